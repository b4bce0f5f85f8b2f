package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is a gateway that says what the test says, on loopback.
func wire(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(answer)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() { client.CloseIdleConnections(); server.Close() })
	return &Client{BaseURL: server.URL + "/gateway", HTTP: client, Idle: 5 * time.Second}
}

func sse(w http.ResponseWriter, data ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, d := range data {
		fmt.Fprintf(w, "data: %s\n\n", d)
	}
	http.NewResponseController(w).Flush()
}

func delta(inner string) string { return `{"choices":[{"index":0,"delta":` + inner + `}]}` }
func calls(inner string) string { return delta(`{"tool_calls":[` + inner + `]}`) }

// ask answers what Stream made of the given events and [DONE].
func ask(t *testing.T, data ...string) (Answer, []Delta, error) {
	t.Helper()
	c := wire(t, func(w http.ResponseWriter, _ *http.Request) { sse(w, append(data, "[DONE]")...) })
	var deltas []Delta
	a, err := c.Stream(t.Context(), "tok", Request{Model: "m", Step: 3}, func(d Delta) { deltas = append(deltas, d) })
	return a, deltas, err
}

func TestSendsTheRequest(t *testing.T) {
	var got, auth, path string
	c := wire(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got, auth, path = string(raw), r.Header.Get("Authorization"), r.URL.Path
		sse(w, delta(`{"content":"ok"}`), "[DONE]")
	})
	c.BaseURL += "/"
	_, err := c.Stream(t.Context(), "tok", Request{
		Model: "m", MaxTokens: 5,
		Messages: []Message{
			{Role: "system", Content: "a <b> & c"},
			{Role: "user"},
			{Role: "assistant", Calls: []Call{{ID: "c1", Name: "shell", Arguments: `{"command":"ls"}`}}},
			{Role: "tool", CallID: "c1", Content: "exit code: 0"},
		},
		Tools: []Tool{{Name: "shell", Description: "runs", Parameters: json.RawMessage(`{"type":"object"}`)}},
	}, nil)
	want := `{"model":"m","messages":[{"role":"system","content":"a <b> & c"},{"role":"user","content":""},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"shell","arguments":"{\"command\":\"ls\"}"}}]},` +
		`{"role":"tool","content":"exit code: 0","tool_call_id":"c1"}],` +
		`"tools":[{"type":"function","function":{"name":"shell","description":"runs","parameters":{"type":"object"}}}],` +
		`"max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}` + "\n"
	if err != nil || got != want || auth != "Bearer tok" || path != "/gateway/v1/chat/completions" {
		t.Fatalf("%v %s %s\ngot  %s\nwant %s", err, auth, path, got, want)
	}
}

func TestPutsAnAnswerTogether(t *testing.T) {
	a, deltas, err := ask(t,
		delta(`{"role":"assistant","content":""}`), delta(`{"content":"Hel"}`), delta(`{"content":"lo","x":1}`),
		calls(`{"index":0,"id":"a","type":"function","function":{"name":"shell","arguments":""}}`),
		calls(`{"index":1,"id":"b","function":{"name":"read"}}`),
		calls(`{"index":0,"function":{"arguments":"{\"command\":"}}`),
		calls(`{"index":1,"function":{"arguments":"{}"}},{"index":0,"function":{"arguments":"\"ls\"}"}}`),
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":4}}`)
	if err != nil || a.Text != "Hello" || a.Finish != "tool_calls" || a.Usage == nil || *a.Usage.InputTokens != 0 || *a.Usage.OutputTokens != 4 {
		t.Fatalf("%+v %v", a, err)
	}
	if want := []Call{{"a", "shell", `{"command":"ls"}`, false}, {"b", "read", "{}", false}}; fmt.Sprint(a.Calls) != fmt.Sprint(want) {
		t.Fatalf("%+v", a.Calls)
	}
	var text string
	arguments := map[int]string{}
	for _, d := range deltas {
		text += d.Text
		if d.Call != nil {
			arguments[d.Call.Index] += d.Call.Name + d.Call.Arguments
		}
	}
	if text != "Hello" || arguments[0] != `shell{"command":"ls"}` || arguments[1] != "read{}" {
		t.Fatalf("%q %v", text, arguments)
	}
}

func TestCallsInEveryManner(t *testing.T) {
	whole := func(index, id, name, arguments string) string {
		out := `{` + index
		if id != "" {
			out += `"id":"` + id + `",`
		}
		return out + `"function":{"name":"` + name + `","arguments":` + arguments + `}}`
	}
	zero := `"index":0,`
	cases := map[string]struct {
		data []string
		want []Call
	}{
		"whole at once":            {[]string{calls(whole(zero, "a", "x", `"{}"`) + "," + whole(`"index":1,`, "b", "y", `"{}"`))}, []Call{{"a", "x", "{}", false}, {"b", "y", "{}", false}}},
		"no index":                 {[]string{calls(whole("", "a", "x", `"{}"`)), calls(whole("", "b", "y", `"{}"`))}, []Call{{"a", "x", "{}", false}, {"b", "y", "{}", false}}},
		"no index, in pieces":      {[]string{calls(whole("", "a", "x", `"{"`)), calls(`{"function":{"arguments":"}"}}`)}, []Call{{"a", "x", "{}", false}}},
		"all at index 0":           {[]string{calls(whole(zero, "a", "x", `"{}"`)), calls(whole(zero, "b", "x", `"{}"`))}, []Call{{"a", "x", "{}", false}, {"b", "x", "{}", false}}},
		"index 0, no ids":          {[]string{calls(whole(zero, "", "x", `"{}"`)), calls(whole(zero, "", "x", `"{}"`))}, []Call{{"call_3_0", "x", "{}", false}, {"call_3_1", "x", "{}", false}}},
		"neither index nor id":     {[]string{calls(whole("", "", "x", `""`)), calls(whole("", "", "y", `""`))}, []Call{{"call_3_0", "x", "{}", false}, {"call_3_1", "y", "{}", false}}},
		"name in every piece":      {[]string{calls(whole(zero, "", "x", `"{"`)), calls(whole(zero, "", "x", `"}"`))}, []Call{{"call_3_0", "x", "{}", false}}},
		"name and id repeated":     {[]string{calls(whole(zero, "a", "x", `"{"`)), calls(whole(zero, "a", "x", `"}"`))}, []Call{{"a", "x", "{}", false}}},
		"id later":                 {[]string{calls(whole(zero, "", "x", `"{"`)), calls(`{"index":0,"id":"a","function":{"arguments":"}"}}`)}, []Call{{"a", "x", "{}", false}}},
		"same id twice":            {[]string{calls(whole(zero, "a", "x", `"{}"`)), calls(whole(`"index":1,`, "a", "y", `"{}"`))}, []Call{{"a", "x", "{}", false}, {"call_3_1", "y", "{}", false}}},
		"sparse index":             {[]string{calls(whole(`"index":7,`, "a", "x", `"{}"`))}, []Call{{"a", "x", "{}", false}}},
		"no arguments":             {[]string{calls(`{"index":0,"id":"a","function":{"name":"x"}}`)}, []Call{{"a", "x", "{}", false}}},
		"arguments as an object":   {[]string{calls(whole(zero, "a", "x", `{"p":1}`))}, []Call{{"a", "x", `{"p":1}`, false}}},
		"arguments not JSON":       {[]string{calls(whole(zero, "a", "x", `"{\"p\":"`))}, []Call{{"a", "x", `{"p":`, true}}},
		"arguments not an object":  {[]string{calls(whole(zero, "a", "x", `"[1]"`))}, []Call{{"a", "x", `[1]`, true}}},
		"arguments null in a text": {[]string{calls(whole(zero, "a", "x", `"null"`))}, []Call{{"a", "x", `null`, true}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, _, err := ask(t, c.data...)
			if err != nil || fmt.Sprintf("%+v", a.Calls) != fmt.Sprintf("%+v", c.want) {
				t.Fatalf("%v\ngot  %+v\nwant %+v", err, a.Calls, c.want)
			}
			if a.Usage != nil || a.Finish != "" {
				t.Fatalf("unknown became something: %+v", a)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	refuse := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	stream := func(data ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { sse(w, data...) }
	}
	forever := func(piece string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
			}
		}
	}
	big := strings.Repeat("x", 1<<20)
	cases := []struct {
		name   string
		answer http.HandlerFunc
		kind   error
		code   string
	}{
		{"rate limit", refuse(429, `{"error":{"code":"upstream_rate_limited","message":"slow","retryable":true}}`), ErrUnavailable, "upstream_rate_limited"},
		{"server error from elsewhere", refuse(502, `<html>`), ErrUnavailable, ""},
		{"gateway says no use", refuse(502, `{"error":{"code":"upstream_refused_key","retryable":false}}`), ErrRefused, "upstream_refused_key"},
		{"bad request", refuse(400, `{"error":{"code":"invalid_request"}}`), ErrRefused, "invalid_request"},
		{"token", refuse(401, `{"error":{"code":"invalid_token"}}`), ErrRefused, "invalid_token"},
		{"fenced", refuse(401, `{"error":{"code":"run_fenced","retryable":false}}`), ErrFenced, "run_fenced"},
		{"broken before", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ErrUnavailable, "gateway_unreachable"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, ErrRefused, ""},
		{"not a gateway", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }, ErrRefused, "not_a_gateway"},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			sse(w, delta(`{"content":"x"}`))
			panic(http.ErrAbortHandler)
		}, ErrCut, "gateway_cut"},
		{"no [DONE]", stream(delta(`{"content":"x"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), ErrCut, "gateway_cut"},
		{"error event", stream(delta(`{"content":"x"}`), `{"error":{"code":"upstream_cut","message":"m","retryable":true}}`), ErrCut, "upstream_cut"},
		{"error event, no use", stream(`{"error":{"code":"upstream_key_echo","retryable":false}}`), ErrRefused, "upstream_key_echo"},
		{"error event, text", stream(`{"error":"boom"}`), ErrCut, ""},
		{"not JSON", stream("nope"), ErrCut, "answer_not_readable"},
		{"text too long", forever("data: " + delta(`{"content":"`+big+`"}`) + "\n\n"), ErrRefused, "answer_too_large"},
		{"arguments too long", forever("data: " + calls(`{"index":0,"function":{"arguments":"`+big+`"}}`) + "\n\n"), ErrRefused, "answer_too_large"},
		{"many calls", forever("data: " + calls(`{"id":"`+big[:1000]+`","function":{"name":"x"}}`) + "\n\n"), ErrRefused, "answer_too_large"},
		{"calls of nothing", func(w http.ResponseWriter, _ *http.Request) {
			for i := range 2000 {
				sse(w, calls(fmt.Sprintf(`{"index":%d}`, i)))
			}
		}, ErrRefused, "answer_too_large"},
		{"line too long", forever("data: " + big), ErrRefused, "answer_too_large"},
		{"never an event", forever(":" + big + "\n"), ErrRefused, "answer_too_large"},
		{"silent", func(w http.ResponseWriter, _ *http.Request) {
			sse(w, delta(`{"content":"x"}`))
			time.Sleep(400 * time.Millisecond)
		}, ErrCut, "gateway_silent"},
		{"silent from the start", func(http.ResponseWriter, *http.Request) { time.Sleep(400 * time.Millisecond) }, ErrUnavailable, "gateway_silent"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			client := wire(t, c.answer)
			if strings.HasPrefix(c.name, "silent") {
				client.Idle = 100 * time.Millisecond
			}
			a, err := client.Stream(t.Context(), "tok-secret", Request{Model: "m"}, nil)
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, c.kind) || e.Code != c.code || e.Retryable() != (c.kind == ErrUnavailable || c.kind == ErrCut) {
				t.Fatalf("got %v (%+v), want %v %q", err, e, c.kind, c.code)
			}
			if fmt.Sprint(a) != fmt.Sprint(Answer{}) || strings.Contains(err.Error(), "tok-secret") {
				t.Fatalf("%+v %v", a, err)
			}
			if e.Status == 429 && (e.RetryAfter == nil || *e.RetryAfter != 7*time.Second) {
				t.Fatalf("%+v", e)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	_, err = (&Client{BaseURL: "http://" + free.Addr().String()}).Stream(t.Context(), "t", Request{}, nil)
	if !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
}

func TestCancellationComesBackAsItsCause(t *testing.T) {
	c := wire(t, func(w http.ResponseWriter, r *http.Request) { sse(w, delta(`{"content":"x"}`)); <-r.Context().Done() })
	why := errors.New("the run was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := c.Stream(ctx, "t", Request{}, func(Delta) { cancel(why) })
	var e *Error
	if !errors.Is(err, why) || errors.As(err, &e) {
		t.Fatalf("%v", err)
	}
}
