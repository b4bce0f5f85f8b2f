package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cairn/db/runtoken"
)

func TestAuthorisation(t *testing.T) {
	expired := runtoken.Mint(tokenKey, testRun, 2, time.Now().Add(-time.Second))
	cases := []struct {
		name, header, value string
		fenced              error
		status              int
		code                string
	}{
		{"bearer", "Authorization", "Bearer " + runToken(), nil, 200, ""},
		{"lower case scheme", "Authorization", "bearer " + runToken(), nil, 200, ""},
		{"x-api-key", "X-Api-Key", runToken(), nil, 200, ""},
		{"none", "X-Other", "", nil, 401, codeMissingToken},
		{"basic", "Authorization", "Basic " + runToken(), nil, 401, codeMissingToken},
		{"empty", "Authorization", "Bearer ", nil, 401, codeMissingToken},
		{"not ours", "Authorization", "Bearer sk-other", nil, 401, codeInvalidToken},
		{"changed", "Authorization", "Bearer " + runToken() + "x", nil, 401, codeInvalidToken},
		{"expired", "X-Api-Key", expired, nil, 401, codeInvalidToken},
		{"fenced", "X-Api-Key", runToken(), fmt.Errorf("epoch 3: %w", ErrFenced), 401, codeFenced},
		{"unknown", "X-Api-Key", runToken(), errors.New("database away"), 503, codeAuthDown},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.fenced = c.fenced
			for _, path := range []string{"GET /models", "POST /chat/completions"} {
				method, path, _ := strings.Cut(path, " ")
				resp, body := b.do(method, path, `{"model":"demo","messages":[{"role":"user","content":"hi"}]}`, "Authorization", "", c.header, c.value)
				if resp.StatusCode != c.status {
					t.Fatalf("%s: status %d: %s", path, resp.StatusCode, body)
				}
				if c.code == "" {
					continue
				}
				if e := fault(t, body); e.Code != c.code || e.Retryable != (c.status == 503) {
					t.Fatalf("%s: %+v", path, e)
				}
				if len(c.value) > 20 && (strings.Contains(body, c.value) || strings.Contains(b.logged(), c.value)) {
					t.Fatal("the token is repeated")
				}
			}
			if len(b.calls) > 1 {
				t.Fatal("a refused request was observed as a call")
			}
		})
	}
}

func TestShortTokenKeyAcceptsNobody(t *testing.T) {
	short := []byte("short")
	a := RunTokens{Key: short, Now: time.Now, StillRunning: func(context.Context, string, int64) error { return nil }}
	_, err := a.Authorize(t.Context(), runtoken.Mint(short, "r", 1, time.Now().Add(time.Hour)))
	if !errors.Is(err, runtoken.ErrKey) || errors.Is(err, ErrUnauthorized) {
		t.Fatalf("got %v", err)
	}
}

func TestBadRequests(t *testing.T) {
	const messages = `"messages":[{"role":"user","content":"x"}]`
	cases := []struct {
		name, body string
		status     int
		code       string
		param      string
	}{
		{"empty", ``, 400, codeInvalid, ""},
		{"not JSON", `{"model":`, 400, codeInvalid, ""},
		{"text after", `{} {}`, 400, codeInvalid, ""},
		{"list", `[]`, 400, codeInvalid, ""},
		{"null", `null`, 400, codeInvalid, ""},
		{"no model", `{` + messages + `}`, 400, codeInvalid, "model"},
		{"model number", `{"model":1,` + messages + `}`, 400, codeInvalid, "model"},
		{"model by another case", `{"Model":"demo",` + messages + `}`, 400, codeInvalid, "model"},
		{"stream text", `{"model":"demo","stream":"yes",` + messages + `}`, 400, codeInvalid, "stream"},
		{"options list", `{"model":"demo","stream":true,"stream_options":[],` + messages + `}`, 400, codeInvalid, "stream_options"},
		{"options unstreamed", `{"model":"demo","stream_options":{},` + messages + `}`, 400, codeInvalid, "stream_options"},
		{"usage text", `{"model":"demo","stream":true,"stream_options":{"include_usage":"y"},` + messages + `}`, 400, codeInvalid, "stream_options.include_usage"},
		{"no messages", `{"model":"demo"}`, 400, codeInvalid, "messages"},
		{"messages empty", `{"model":"demo","messages":[]}`, 400, codeInvalid, "messages"},
		{"messages text", `{"model":"demo","messages":["x"]}`, 400, codeInvalid, "messages"},
		{"no role", `{"model":"demo","messages":[{"role":"user"},{"content":"x"}]}`, 400, codeInvalid, "messages[1].role"},
		{"content number", `{"model":"demo","messages":[{"role":"user","content":7}]}`, 400, codeInvalid, "messages[0].content"},
		{"tools object", `{"model":"demo","tools":{},` + messages + `}`, 400, codeInvalid, "tools"},
		{"tool text", `{"model":"demo","tools":[{},"x"],` + messages + `}`, 400, codeInvalid, "tools[1]"},
		{"unknown model", `{"model":"gpt-x",` + messages + `}`, 404, codeUnknownModel, "model"},
		{"too large", `{"model":"` + strings.Repeat("m", maxRequest) + `"}`, 413, codeTooLarge, ""},
	}
	b := newBench(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			resp, body := b.chat(c.body)
			e := fault(t, body)
			param := ""
			if e.Param != nil {
				param = *e.Param
			}
			if resp.StatusCode != c.status || e.Code != c.code || param != c.param || e.Retryable || e.RequestID != resp.Header.Get("X-Request-Id") {
				t.Fatalf("status %d, %+v, param %q", resp.StatusCode, e, param)
			}
			if c.code == codeUnknownModel && !strings.Contains(e.Message, "demo") {
				t.Fatalf("the models are not listed: %s", e.Message)
			}
		})
	}
	if len(b.calls) != 0 {
		t.Fatalf("bad requests were observed as calls: %+v", b.calls)
	}
}

func TestEncodingAndMediaAreRefused(t *testing.T) {
	b := newBench(t)
	resp, body := b.do("POST", "/chat/completions", "x", "Content-Encoding", "gzip")
	if e := fault(t, body); resp.StatusCode != 415 || e.Code != codeEncoding {
		t.Fatalf("%d %+v", resp.StatusCode, e)
	}
	resp, body = b.do("POST", "/chat/completions", "x", "Content-Type", "text/plain")
	if e := fault(t, body); resp.StatusCode != 400 || e.Code != codeInvalid {
		t.Fatalf("%d %+v", resp.StatusCode, e)
	}
}

func TestPathsAndMethods(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		method, path string
		status       int
		code         string
	}{{"GET", "/chat/completions", 405, codeMethod}, {"DELETE", "/models", 405, codeMethod}, {"POST", "/responses", 404, codeUnknownPath}} {
		resp, body := b.do(c.method, c.path, "")
		if e := fault(t, body); resp.StatusCode != c.status || e.Code != c.code {
			t.Fatalf("%s %s: %d %+v", c.method, c.path, resp.StatusCode, e)
		}
	}
}

func TestModelsListNamesOnly(t *testing.T) {
	b := newBench(t, Model{Name: "house", Protocol: ProtocolOpenAIChat, BaseURL: "https://internal.example/v1", Upstream: "provider-name", Key: Secret{testKey}})
	resp, body := b.do("GET", "/models", "")
	if resp.StatusCode != 200 || !strings.Contains(body, `"id":"demo"`) || !strings.Contains(body, `"id":"house"`) {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	for _, private := range []string{"internal.example", "provider-name", testKey} {
		if strings.Contains(body, private) {
			t.Fatalf("the list shows %q: %s", private, body)
		}
	}
}

func TestCallerThatNeverEndsItsRequestIsBounded(t *testing.T) {
	b := newBench(t)
	b.gateway.callerTime = 100 * time.Millisecond
	conn := b.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "POST /gateway/v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: 100\r\n\r\n{", runToken())
	conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	if err != nil || !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 408 ") {
		t.Fatalf("%v: %s", err, answer[:n])
	}
}

// TestAnswersMayTakeLongerThanRequests: the limit on reading the request must not end the answer.
func TestAnswersMayTakeLongerThanRequests(t *testing.T) {
	b := newBench(t)
	b.gateway.callerTime = 150 * time.Millisecond
	b.gateway.catalogue[0].upstream = demo{pause: 5 * time.Millisecond}
	resp, body := b.chat(`{"model":"demo","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	if resp.StatusCode != 200 || !strings.HasSuffix(body, "data: [DONE]\n\n") || b.observed().Duration < b.gateway.callerTime {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
}

// TestCallerWhoDoesNotReadIsLetGo: else it would hold an upstream for ever.
func TestCallerWhoDoesNotReadIsLetGo(t *testing.T) {
	piece := textChunk(strings.Repeat("x", 64<<10))
	up := newScripted(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			sse(w, piece)
		}
	})
	b := newBench(t, up.model())
	b.gateway.callerTime = 200 * time.Millisecond
	conn := b.dial()
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil { // full soon
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /gateway/v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Length: %d\r\n\r\n%s", runToken(), len(ask), ask)
	if c := b.observed(); c.Outcome != codeCallerGone || c.Duration > 9*time.Second {
		t.Fatalf("%+v", c)
	}
}

func TestNewRefusesHalfAConfiguration(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Fatal("accepted a gateway that authorises nobody and logs nothing")
	}
	if _, err := New(Config{Authorize: RunTokens{}, Log: newBench(t).gateway.config.Log, Models: []Model{{Name: "demo"}}}); err == nil {
		t.Fatal("accepted a second demo")
	}
}
