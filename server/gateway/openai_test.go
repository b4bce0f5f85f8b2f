package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestPassesOnWhatItDoesNotKnow(t *testing.T) {
	first := `{"id":"x","model":"dated","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"hm <b>"},"logprobs":null,"x_choice":1e2}],"x_top":{"big":12345678901234567890}}`
	call := `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"shell","arguments":""}}]}}]}`
	counts := `{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"x_detail":{"cached":3}}}`
	up := newScripted(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" || r.Method != "POST" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		sse(w, first, call, endChunk, counts, "[DONE]")
	})
	b := newBench(t, up.model())
	resp, body := b.chat(`{"model":"m","stream":true,"x_new":{"a":[1e3,"<&>"]},"tools":[{"type":"web_search","x":1}],"messages":[{"role":"developer","content":null,"x":true}]}`)
	if got, want := strings.Join(events(body), "\n"), strings.Join([]string{first, call, endChunk, "[DONE]"}, "\n"); resp.StatusCode != 200 || got != want {
		t.Fatalf("%d\ngot  %s\nwant %s", resp.StatusCode, got, want)
	}
	want := `{"messages":[{"role":"developer","content":null,"x":true}],"model":"provider-m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"web_search","x":1}],"x_new":{"a":[1e3,"<&>"]}}`
	if up.bodies[0] != want {
		t.Fatalf("the upstream got\n%s\nwant\n%s", up.bodies[0], want)
	}
	if h := up.heads[0]; h.Get("Authorization") != "Bearer "+testKey || h.Get("X-Title") != "cairn" || h.Get("X-Api-Key") != "" || h.Get("Accept-Encoding") != "identity" {
		t.Fatalf("headers: %v", h)
	}
	if c := b.observed(); c.Outcome != "ok" || *c.InputTokens != 11 || *c.OutputTokens != 7 || c.Upstream != "provider-m" || c.FirstToken == nil {
		t.Fatalf("%+v", c)
	}
}

func TestUsageIsShownToWhoAsked(t *testing.T) {
	counts := `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":7}}`
	up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		sse(w, textChunk("x"), endChunk, counts, "[DONE]")
	})
	b := newBench(t, up.model())
	_, body := b.chat(strings.Replace(ask, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true,"x":1}`, 1))
	if !strings.Contains(body, counts) || !strings.Contains(up.bodies[0], `"stream_options":{"include_usage":true,"x":1}`) {
		t.Fatal(body, up.bodies[0])
	}
	if c := b.observed(); c.InputTokens == nil || *c.InputTokens != 0 {
		t.Fatalf("a counted zero is zero: %+v", c)
	}
}

func TestUnknownCountsAreNil(t *testing.T) {
	for _, counts := range []string{`null`, `{}`, `{"prompt_tokens":"9","completion_tokens":-1}`, `{"prompt_tokens":1.5}`, `[]`} {
		up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			sse(w, textChunk("x"), endChunk, `{"choices":[],"usage":`+counts+`}`, "[DONE]")
		})
		b := newBench(t, up.model())
		b.chat(ask)
		if c := b.observed(); c.Outcome != "ok" || c.InputTokens != nil || c.OutputTokens != nil {
			t.Fatalf("%s: %+v", counts, c)
		}
	}
}

func TestWholeAnswerIsPassedByteForByte(t *testing.T) {
	answer := "{\n \"choices\" : [{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"<x>\"},\"finish_reason\":\"stop\"}], \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}, \"x\": 1e1}"
	up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Write([]byte(answer))
	})
	b := newBench(t, up.model())
	resp, body := b.chat(askWhole)
	if body != answer || resp.Header.Get("Content-Type") != "application/json" || strings.Contains(up.bodies[0], "stream_options") {
		t.Fatalf("%s\n%s", body, up.bodies[0])
	}
	if c := b.observed(); c.FirstToken != nil || *c.InputTokens != 1 || *c.OutputTokens != 2 {
		t.Fatalf("%+v", c)
	}
}

// TestDeltasComeAsTheyAre: the upstream does not go on before the caller has what it sent.
func TestDeltasComeAsTheyAre(t *testing.T) {
	seen := make(chan bool)
	up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		for range 20 {
			sse(w, textChunk("word "))
			<-seen
		}
		sse(w, endChunk, "[DONE]")
	})
	b := newBench(t, up.model())
	req, _ := http.NewRequest("POST", b.url+"/chat/completions", strings.NewReader(ask))
	req.Header.Set("X-Api-Key", runToken())
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines, done := bufio.NewScanner(resp.Body), false
	for lines.Scan() {
		if strings.Contains(lines.Text(), "word ") {
			seen <- true
		}
		done = done || lines.Text() == "data: [DONE]"
	}
	if !done {
		t.Fatal("no end")
	}
}

func TestEventStreamForms(t *testing.T) {
	text := textChunk("x")
	half := len(text) / 2
	for name, stream := range map[string]string{
		"carriage returns":       "data: " + text + "\r\n\r\ndata: " + endChunk + "\r\n\r\ndata: [DONE]\r\n\r\n",
		"comments, other fields": ": hello\n\nid: 1\nretry: 5\nevent: message\ndata:" + text + "\n\n: PROCESSING\n\ndata: " + endChunk + "\n\ndata: [DONE]\n\n",
		"object over two lines":  "data: " + text[:strings.Index(text[half:], ",")+half+1] + "\ndata: " + text[strings.Index(text[half:], ",")+half+1:] + "\n\ndata: " + endChunk + "\n\ndata: [DONE]\n\n",
		"no empty line at end":   "data: " + text + "\n\ndata: " + endChunk + "\n\ndata: [DONE]",
		"no [DONE]":              "data: " + text + "\n\ndata: " + endChunk + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Write([]byte(stream))
			})
			b := newBench(t, up.model())
			_, body := b.chat(ask)
			if got := strings.Join(events(body), "\n"); got != text+"\n"+endChunk+"\n[DONE]" {
				t.Fatal(got)
			}
		})
	}
}

func TestCallerWhoLeavesCancelsTheUpstream(t *testing.T) {
	gone := make(chan struct{})
	up := newScripted(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		sse(w, textChunk("x"))
		<-r.Context().Done()
		close(gone)
	})
	b := newBench(t, up.model())
	ctx, leave := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "POST", b.url+"/chat/completions", strings.NewReader(ask))
	req.Header.Set("X-Api-Key", runToken())
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	resp.Body.Close()
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Fatal("the upstream goes on for nobody")
	}
	if c := b.observed(); c.Outcome != codeCallerGone || c.FirstToken == nil {
		t.Fatalf("%+v", c)
	}
}

func TestCallerWhoLeavesWhileWaitingForARetry(t *testing.T) {
	up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(429)
	})
	b := newBench(t, up.model())
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	req, _ := http.NewRequestWithContext(ctx, "POST", b.url+"/chat/completions", strings.NewReader(ask))
	req.Header.Set("X-Api-Key", runToken())
	if _, err := b.client.Do(req); err == nil {
		t.Fatal("answered")
	}
	if c := b.observed(); c.Outcome != codeCallerGone || up.asked() != 1 || c.Duration > 900*time.Millisecond {
		t.Fatalf("%+v after %d attempts", c, up.asked())
	}
}

func TestRedirectsCarryNothing(t *testing.T) {
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		up := newScripted(t, func(_ int, w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		b := newBench(t, up.model())
		resp, body := b.chat(ask)
		if e := fault(t, body); resp.StatusCode != 502 || e.Code != codeRedirect || e.Retryable || reached || strings.Contains(body, other.URL) {
			t.Fatalf("%d: %d %+v reached=%v", status, resp.StatusCode, e, reached)
		}
	}
}

func TestLogsHoldNoPromptNoAnswerNoKey(t *testing.T) {
	up := newScripted(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			sse(w, textChunk("the secret answer"), endChunk, "[DONE]")
			return
		}
		w.WriteHeader(400)
		json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": "cannot take: the secret prompt"}})
	})
	b := newBench(t, up.model())
	b.chat(ask)
	b.chat(ask)
	time.Sleep(20 * time.Millisecond)
	log := b.logged()
	if strings.Count(log, `"msg":"gateway call"`) != 2 || !strings.Contains(log, `"request_id":"req_`) || !strings.Contains(log, `"upstream_status":400`) {
		t.Fatal(log)
	}
	for _, private := range []string{"secret", testKey, "cairn-run-v1"} {
		if strings.Contains(log, private) {
			t.Fatalf("%q is in the log: %s", private, log)
		}
	}
}
