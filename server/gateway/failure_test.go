package gateway

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestRetriesBeforeTheFirstByte(t *testing.T) {
	statuses := []int{429, 529, 503}
	up := newScripted(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n <= len(statuses) {
			w.WriteHeader(statuses[n-1])
			return
		}
		sse(w, textChunk("x"), endChunk, "[DONE]")
	})
	b := newBench(t, up.model())
	resp, body := b.chat(ask)
	if resp.StatusCode != 200 || !strings.HasSuffix(body, "data: [DONE]\n\n") || up.asked() != 4 {
		t.Fatalf("%d after %d attempts: %s", resp.StatusCode, up.asked(), body)
	}
	if c := b.observed(); c.Outcome != "ok" {
		t.Fatalf("%+v", c)
	}
}

func TestUpstreamRefusals(t *testing.T) {
	cases := []struct {
		status, attempts, want int
		code                   string
		retryable              bool
	}{
		{429, 4, 429, codeRateLimited, true},
		{529, 4, 503, codeOverloaded, true},
		{503, 4, 503, codeOverloaded, true},
		{500, 4, 502, codeUpstreamFailed, true},
		{504, 4, 502, codeUpstreamFailed, true},
		{401, 1, 502, codeUpstreamKey, false},
		{403, 1, 502, codeUpstreamKey, false},
		{404, 1, 502, codeUpstreamMissing, false},
		{400, 1, 400, codeUpstreamRefused, false},
		{413, 1, 413, codeUpstreamRefused, false},
		{204, 1, 502, codeUpstreamInvalid, false},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				if c.status != 204 {
					fmt.Fprint(w, `{"error":{"message":"their words","type":"t","param":"p","code":"their_code"}}`)
				}
			})
			b := newBench(t, up.model())
			for _, body := range []string{ask, askWhole} {
				resp, answer := b.chat(body)
				e := fault(t, answer)
				if resp.StatusCode != c.want || e.Code != c.code || e.Retryable != c.retryable || *e.UpstreamStatus != c.status ||
					resp.Header.Get("X-Should-Retry") != fmt.Sprint(c.retryable) || resp.Header.Get("Content-Type") != "application/json" {
					t.Fatalf("%d %v %+v", resp.StatusCode, resp.Header, e)
				}
				if c.status != 204 && (!strings.Contains(e.Message, "their words") || *e.UpstreamCode != "their_code" || *e.Param != "p") {
					t.Fatalf("%+v", e)
				}
			}
			if up.asked() != 2*c.attempts {
				t.Fatalf("%d attempts, want %d for each", up.asked(), c.attempts)
			}
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	up := newScripted(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(429)
			return
		}
		sse(w, textChunk("x"), endChunk, "[DONE]")
	})
	b := newBench(t, up.model())
	began := time.Now()
	if resp, _ := b.chat(ask); resp.StatusCode != 200 || time.Since(began) < time.Second {
		t.Fatalf("%d after %v", resp.StatusCode, time.Since(began))
	}
}

func TestLongRetryAfterIsLeftToTheCaller(t *testing.T) {
	up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(429)
	})
	b := newBench(t, up.model())
	resp, _ := b.chat(ask)
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "120" || up.asked() != 1 {
		t.Fatalf("%d %v after %d attempts", resp.StatusCode, resp.Header, up.asked())
	}
}

func TestUnreachable(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	m := Model{Name: "m", BaseURL: "http://" + free.Addr().String(), Upstream: "x", Timeout: time.Second, Idle: time.Second}
	b := newBench(t, m)
	resp, body := b.chat(ask)
	if e := fault(t, body); resp.StatusCode != 502 || e.Code != codeUnreachable || !e.Retryable || strings.Contains(body, free.Addr().String()) {
		t.Fatalf("%d %+v", resp.StatusCode, e)
	}
	if !strings.Contains(b.logged(), "connection refused") {
		t.Fatal("the operator is not told why: " + b.logged())
	}
}

// TestCertificateThatIsNotValid: nothing is sent, and trying again is no use.
func TestCertificateThatIsNotValid(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	up.Config.ErrorLog = log.New(io.Discard, "", 0)
	up.StartTLS()
	defer up.Close()
	b := newBench(t, Model{Name: "m", BaseURL: up.URL, Upstream: "x", Key: Secret{testKey}, Timeout: time.Second, Idle: time.Second})
	resp, body := b.chat(ask)
	if e := fault(t, body); resp.StatusCode != 502 || e.Code != codeUnreachable || e.Retryable || !strings.Contains(b.logged(), "certificate") {
		t.Fatalf("%d %+v %s", resp.StatusCode, e, b.logged())
	}
}

// A connection that breaks after the request was sent may have been billed.
func TestBrokenBeforeTheAnswerIsNotResent(t *testing.T) {
	up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	b := newBench(t, up.model())
	resp, body := b.chat(ask)
	if e := fault(t, body); resp.StatusCode != 502 || e.Code != codeUpstreamCut || !e.Retryable || up.asked() != 1 {
		t.Fatalf("%d %+v after %d attempts", resp.StatusCode, e, up.asked())
	}
}

// hostile upstreams: each must end in time, in bounds, with a stable code.
func TestHostileStreams(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	forever := func(w http.ResponseWriter, piece string, pause time.Duration) {
		for {
			if _, err := io.WriteString(w, piece); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			time.Sleep(pause)
		}
	}
	cases := []struct {
		name    string
		answer  func(w http.ResponseWriter)
		code    string
		started bool // the caller had a piece of the answer before
	}{
		{"cut", func(w http.ResponseWriter) { sse(w, textChunk("x")); panic(http.ErrAbortHandler) }, codeUpstreamCut, true},
		{"cut within an event", func(w http.ResponseWriter) { sse(w, textChunk("x")); io.WriteString(w, `data: {"cho`) }, codeUpstreamCut, true},
		{"clean close, not finished", func(w http.ResponseWriter) { sse(w, textChunk("x")) }, codeUpstreamCut, true},
		{"one of two choices finished", func(w http.ResponseWriter) {
			sse(w, strings.Replace(textChunk("x"), `"index":0`, `"index":1`, 1), endChunk)
		}, codeUpstreamCut, true},
		{"nothing at all", func(w http.ResponseWriter) { sse(w) }, codeUpstreamCut, false},
		{"not an event stream", func(w http.ResponseWriter) { sse(w); io.WriteString(w, "garbage\n\x00\xff\n\nmore\n") }, codeUpstreamCut, false},
		{"not JSON", func(w http.ResponseWriter) { sse(w, textChunk("x"), "{nope") }, codeUpstreamInvalid, true},
		{"first not JSON", func(w http.ResponseWriter) { sse(w, "hello") }, codeUpstreamInvalid, false},
		{"list", func(w http.ResponseWriter) { sse(w, "[]") }, codeUpstreamInvalid, false},
		{"choices of another shape", func(w http.ResponseWriter) { sse(w, `{"choices":{"a":1}}`) }, codeUpstreamInvalid, false},
		{"deep nesting", func(w http.ResponseWriter) { sse(w, `{"choices":`+strings.Repeat("[", 1<<20)) }, codeUpstreamInvalid, false},
		{"error event", func(w http.ResponseWriter) { sse(w, textChunk("x"), `{"error":{"message":"boom","code":500}}`) }, codeUpstreamFailed, true},
		{"error first", func(w http.ResponseWriter) { sse(w, `{"error":"boom"}`) }, codeUpstreamFailed, false},
		{"other type", func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html"); io.WriteString(w, "<html>") }, codeUpstreamInvalid, false},
		{"JSON for a stream", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{}`)
		}, codeUpstreamInvalid, false},
		{"compressed", func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "gzip"); sse(w, "x") }, codeUpstreamInvalid, false},
		{"huge line", func(w http.ResponseWriter) { sse(w, textChunk("x")); io.WriteString(w, "data: "); forever(w, big, 0) }, codeUpstreamLarge, true},
		{"huge event", func(w http.ResponseWriter) { sse(w, textChunk("x")); forever(w, "data: "+big+"\n", 0) }, codeUpstreamLarge, true},
		{"100 MB", func(w http.ResponseWriter) { sse(w, textChunk(big)); forever(w, ":"+big+"\n", 0) }, codeUpstreamLarge, true},
		{"100 MB without an event", func(w http.ResponseWriter) { sse(w); forever(w, ":"+big+"\n", 0) }, codeUpstreamLarge, false},
		{"silent", func(w http.ResponseWriter) { sse(w, textChunk("x")); time.Sleep(600 * time.Millisecond) }, codeUpstreamTimeout, true},
		{"no headers", func(w http.ResponseWriter) { time.Sleep(600 * time.Millisecond) }, codeUpstreamTimeout, false},
		{"a byte at a time", func(w http.ResponseWriter) { sse(w); forever(w, "d", 20*time.Millisecond) }, codeUpstreamTimeout, false},
		{"never ends", func(w http.ResponseWriter) { sse(w); forever(w, "data: "+textChunk("x")+"\n\n", 20*time.Millisecond) }, codeUpstreamTimeout, true},
		{"comments for ever", func(w http.ResponseWriter) { sse(w); forever(w, ": wait\n", 20*time.Millisecond) }, codeUpstreamTimeout, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) { c.answer(w) })
			m := up.model()
			if c.code == codeUpstreamTimeout {
				m.Idle, m.Timeout = 300*time.Millisecond, time.Second
			}
			b := newBench(t, m)
			began := time.Now()
			resp, body := b.chat(ask)
			if took := time.Since(began); took > 8*time.Second {
				t.Fatalf("took %v", took)
			}
			checkEnd(t, resp, body, c.code, c.started)
			if o := b.observed(); o.Outcome != c.code {
				t.Fatalf("%+v", o)
			}
		})
	}
}

// retryWords are among those that the pi agent (0.73) looks for.
var retryWords = regexp.MustCompile(`(?i)connection.?error|server.?error|timeout`)

// checkEnd: a status while nothing was sent, else an error event and no [DONE].
func checkEnd(t *testing.T, resp *http.Response, body, code string, started bool) {
	t.Helper()
	if strings.Contains(body, "[DONE]") {
		t.Fatal("it says that the answer is complete")
	}
	if !started {
		if e := fault(t, body); resp.StatusCode < 500 || e.Code != code {
			t.Fatalf("%d %+v", resp.StatusCode, e)
		}
		return
	}
	all := events(body)
	if !strings.Contains(all[len(all)-1], `"retryable":false`) && !retryWords.MatchString(all[len(all)-1]) {
		t.Fatal("agents that go by the message will not try again: " + all[len(all)-1])
	}
	last, ok := strings.CutPrefix(all[len(all)-1], "error|")
	if e := fault(t, last); !ok || resp.StatusCode != 200 || e.Code != code {
		t.Fatalf("%d %+v", resp.StatusCode, e)
	}
}

func TestHostileWholeAnswers(t *testing.T) {
	cases := map[string]struct {
		answer func(w http.ResponseWriter)
		code   string
	}{
		"100 MB": {func(w http.ResponseWriter) {
			chunk := []byte(strings.Repeat("x", 1<<20))
			for range 100 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, codeUpstreamLarge},
		"cut": {func(w http.ResponseWriter) {
			io.WriteString(w, `{"choices":`)
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, codeUpstreamCut},
		"not JSON":   {func(w http.ResponseWriter) { io.WriteString(w, `{"choices":`) }, codeUpstreamInvalid},
		"no choices": {func(w http.ResponseWriter) { io.WriteString(w, `{}`) }, codeUpstreamInvalid},
		"error":      {func(w http.ResponseWriter) { io.WriteString(w, `{"error":{"message":"boom"}}`) }, codeUpstreamFailed},
		"never": {func(w http.ResponseWriter) {
			io.WriteString(w, ` `)
			http.NewResponseController(w).Flush()
			time.Sleep(1200 * time.Millisecond)
		}, codeUpstreamTimeout},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				c.answer(w)
			})
			m := up.model()
			if c.code == codeUpstreamTimeout {
				m.Timeout = time.Second
			}
			b := newBench(t, m)
			resp, body := b.chat(askWhole)
			checkEnd(t, resp, body, c.code, false)
		})
	}
}

func TestErrorBodyThatNeverEnds(t *testing.T) {
	up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		for range 2000 {
			if _, err := io.WriteString(w, strings.Repeat("y", 50)); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	m := up.model()
	m.Idle, m.Timeout = 200*time.Millisecond, time.Second
	b := newBench(t, m)
	resp, body := b.chat(ask)
	if e := fault(t, body); resp.StatusCode != 400 || e.Code != codeUpstreamRefused || len(body) > 2000 {
		t.Fatalf("%d %+v", resp.StatusCode, e)
	}
}

// TestStreamsAreNotKept: what passes through does not stay in memory.
func TestStreamsAreNotKept(t *testing.T) {
	piece := "data: " + textChunk(strings.Repeat("x", 32<<10)) + "\n\n"
	up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 256 { // 8 MB
			io.WriteString(w, piece)
		}
		sse(w, endChunk, "[DONE]")
	})
	m := up.model()
	m.Timeout = time.Minute // the race detector on a busy machine takes its time
	b := newBench(t, m)
	var before, after runtime.MemStats
	req, _ := http.NewRequest("POST", b.url+"/chat/completions", strings.NewReader(ask))
	req.Header.Set("X-Api-Key", runToken())
	runtime.GC()
	runtime.ReadMemStats(&before)
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < 256*32<<10 {
		t.Fatal(n, err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 3<<20 {
		t.Fatalf("heap grew by %d bytes", grown)
	}
}

func TestOneProblemForAnUnknownError(t *testing.T) {
	if p := asProblem(errors.New("x")); p.code != codeInternalError || strings.Contains(p.message, "x: ") {
		t.Fatalf("%+v", p)
	}
}
