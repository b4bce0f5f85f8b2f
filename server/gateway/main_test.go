package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/db/runtoken"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testRun = "0198c0de-run"
	testKey = "sk-test-0123456789abcdef"
)

var tokenKey = bytes.Repeat([]byte{9}, runtoken.MinKey)

func runToken() string { return runtoken.Mint(tokenKey, testRun, 2, time.Now().Add(time.Hour)) }

// bench is a gateway on loopback and everything it says.
type bench struct {
	t       *testing.T
	url     string
	gateway *Gateway
	client  *http.Client
	fenced  error // what StillRunning answers
	mu      sync.Mutex
	calls   []Call
	log     bytes.Buffer
}

func (b *bench) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func newBench(t *testing.T, models ...Model) *bench {
	b := &bench{t: t}
	g, err := New(Config{
		Authorize: RunTokens{Key: tokenKey, Now: time.Now, StillRunning: func(context.Context, string, int64) error { return b.fenced }},
		Models:    models,
		Observe: func(_ context.Context, c Call) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.calls = append(b.calls, c)
		},
		Log: slog.New(slog.NewJSONHandler(b, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range g.catalogue {
		if u, ok := o.upstream.(*openAI); ok {
			u.retries = retries{attempts: 4, base: time.Millisecond, most: 4 * time.Millisecond, obey: 1100 * time.Millisecond}
		}
	}
	server := httptest.NewServer(g)
	b.url, b.gateway, b.client = server.URL+"/gateway/v1", g, &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() { b.client.CloseIdleConnections(); server.Close(); g.Close() })
	return b
}

// observed waits for the one call there must be: it is recorded after the answer.
func (b *bench) observed() Call {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		b.mu.Lock()
		calls := b.calls
		b.mu.Unlock()
		if len(calls) > 1 {
			b.t.Fatalf("observed %d calls, want one: %+v", len(calls), calls)
		}
		if len(calls) == 1 {
			return calls[0]
		}
	}
	b.t.Fatal("the call was not observed")
	return Call{}
}

func (b *bench) logged() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

func (b *bench) do(method, path, body string, header ...string) (*http.Response, string) {
	b.t.Helper()
	req, err := http.NewRequest(method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+runToken())
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp, string(raw)
}

// dial is for callers that do not behave as a client of the library does.
func (b *bench) dial() net.Conn {
	b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimSuffix(b.url, "/gateway/v1"), "http://"))
	if err != nil {
		b.t.Fatal(err)
	}
	return conn
}

func (b *bench) chat(body string) (*http.Response, string) {
	b.t.Helper()
	return b.do("POST", "/chat/completions", body)
}

// fault reads an error answer.
func fault(t *testing.T, body string) errorBody {
	t.Helper()
	var e struct{ Error errorBody }
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Code == "" {
		t.Fatalf("not an error object: %v: %.300s", err, body)
	}
	return e.Error
}

// events splits a stream into its data; the names of events are kept as "name|data".
func events(body string) []string {
	var all []string
	for _, block := range strings.Split(strings.TrimSpace(body), "\n\n") {
		block = strings.Replace(block, "\ndata: ", "|", 1)
		all = append(all, strings.TrimPrefix(strings.TrimPrefix(block, "event: "), "data: "))
	}
	return all
}

// scripted is an upstream that does what the test says, on loopback.
type scripted struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	heads  []http.Header
}

func newScripted(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *scripted {
	s := &scripted{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.bodies, s.heads = append(s.bodies, string(raw)), append(s.heads, r.Header.Clone())
		n := len(s.bodies)
		s.mu.Unlock()
		answer(n, w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *scripted) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func (s *scripted) model() Model {
	return Model{
		Name: "m", Protocol: ProtocolOpenAIChat, BaseURL: s.URL + "/v1", Upstream: "provider-m",
		Key: Secret{testKey}, Headers: map[string]string{"X-Title": "cairn"}, Timeout: 10 * time.Second, Idle: 5 * time.Second,
	}
}

func sse(w http.ResponseWriter, data ...string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	for _, d := range data {
		fmt.Fprintf(w, "data: %s\n\n", d)
	}
	http.NewResponseController(w).Flush()
}

func textChunk(text string) string {
	raw, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"content": text}, "finish_reason": nil}}})
	return string(raw)
}

const (
	endChunk = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	ask      = `{"model":"m","stream":true,"messages":[{"role":"user","content":"the secret prompt"}]}`
	askWhole = `{"model":"m","messages":[{"role":"user","content":"the secret prompt"}]}`
)
