package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// escaped spells the key so that no byte of it stands in the JSON as it is.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

func TestKeyInAnErrorIsRedacted(t *testing.T) {
	bodies := map[string]string{
		"object":        `{"error":{"message":"bad key Bearer ` + testKey + `","code":"` + testKey + `","param":"` + testKey + `"}}`,
		"escaped":       `{"error":{"message":"bad key ` + escaped(testKey) + `"}}`,
		"text":          "request had Authorization: Bearer " + testKey,
		"text, far":     strings.Repeat("y", maxQuote-10) + testKey,
		"error string":  `{"error":"` + testKey + `"}`,
		"escaped field": `{"detail":"` + escaped(testKey) + `"}`,
		"in a field":    `{"detail":{"headers":{"authorization":"Bearer ` + testKey + `"}}}`,
	}
	for name, body := range bodies {
		for _, status := range []int{400, 401, 429, 500} {
			t.Run(fmt.Sprint(name, status), func(t *testing.T) {
				up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("X-Echo", testKey)
					w.WriteHeader(status)
					fmt.Fprint(w, body)
				})
				b := newBench(t, up.model())
				resp, got := b.chat(ask)
				fault(t, got)
				noKey(t, got, fmt.Sprint(resp.Header), b.logged())
				if strings.Contains(got, `u0073`) {
					t.Fatal("the escapes are passed on: " + got)
				}
			})
		}
	}
}

// noKey also finds most of a key.
func noKey(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for i := 0; i+8 <= len(testKey); i++ {
			if strings.Contains(text, testKey[i:i+8]) {
				t.Fatalf("%q of the key is in: %.400s", testKey[i:i+8], text)
			}
		}
	}
}

// heard is what a client makes of a stream: the texts put together.
func heard(t *testing.T, body string) string {
	t.Helper()
	var text strings.Builder
	for _, data := range events(body) {
		var c struct {
			Choices []struct {
				Delta struct {
					Content string     `json:"content"`
					Calls   []demoCall `json:"tool_calls"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if json.Unmarshal([]byte(data), &c) != nil {
			continue
		}
		for _, choice := range c.Choices {
			text.WriteString(choice.Delta.Content)
			for _, call := range choice.Delta.Calls {
				text.WriteString(call.Function.Arguments)
			}
		}
	}
	return text.String()
}

func TestKeyInOneObjectIsRedacted(t *testing.T) {
	for name, spelled := range map[string]string{"plain": testKey, "escaped": escaped(testKey), "half escaped": testKey[:5] + escaped(testKey[5:])} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprint(name, stream), func(t *testing.T) {
				up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
					if stream {
						sse(w, `{"id":"`+spelled+`","choices":[{"index":0,"delta":{"content":"it is `+spelled+`!"}}],"`+spelled+`":1}`, endChunk, "[DONE]")
						return
					}
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, `{"id":"`+spelled+`","choices":[{"index":0,"message":{"content":"it is `+spelled+`!"}}],"`+spelled+`":1}`)
				})
				b := newBench(t, up.model())
				body := ask
				if !stream {
					body = askWhole
				}
				resp, got := b.chat(body)
				if resp.StatusCode != 200 || strings.Count(got, redacted) != 3 || !strings.Contains(got, "it is "+redacted+"!") {
					t.Fatal(resp.StatusCode, got)
				}
				noKey(t, got, b.logged())
				if strings.Contains(got, escaped(testKey)[:30]) {
					t.Fatal("the escapes are passed on: " + got)
				}
			})
		}
	}
}

func callChunk(arguments string) string {
	raw, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]any{"arguments": arguments}}}}}}})
	return string(raw)
}

func TestKeySpelledOverChunksStopsTheAnswer(t *testing.T) {
	for _, size := range []int{1, 2, 3, 7, 20} {
		for name, chunk := range map[string]func(string) string{"text": textChunk, "arguments": callChunk} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
					sse(w, chunk("your key: sk-"))
					for rest := testKey; rest != ""; {
						n := min(size, len(rest))
						sse(w, chunk(rest[:n]), `{"choices":[{"index":0,"delta":{}}]}`)
						rest = rest[n:]
					}
					sse(w, chunk(" done"), endChunk, "[DONE]")
				})
				b := newBench(t, up.model())
				resp, got := b.chat(ask)
				checkEnd(t, resp, got, codeKeyEcho, true)
				noKey(t, heard(t, got), b.logged())
			})
		}
	}
}

// TestWhatOnlyLooksLikeAKeyPasses: the beginning of the key, then something else; and at the very end.
func TestWhatOnlyLooksLikeAKeyPasses(t *testing.T) {
	words := []string{"keys begin with ", "sk-", "test-", "0123", " and go on, ", "like ", "sk-te"}
	up := newScripted(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		for _, word := range words {
			sse(w, textChunk(word))
		}
		sse(w, endChunk, "[DONE]")
	})
	b := newBench(t, up.model())
	_, got := b.chat(ask)
	if heard(t, got) != strings.Join(words, "") || !strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Fatal(got)
	}
}

func TestAWaitingChunkDoesNotStopTheRest(t *testing.T) {
	g := newGuard(Secret{testKey})
	held, out := 0, 0
	for i := range 3 * guardMax {
		text := callChunk("x")
		if i == 0 {
			text = textChunk(testKey[:10])
		}
		c, err := newChunk([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		ready, err := g.pass(c)
		if err != nil {
			t.Fatal(err)
		}
		out += len(ready)
		held = max(held, len(g.held))
	}
	if held > guardMax || out == 0 {
		t.Fatalf("held %d, passed %d", held, out)
	}
}

func TestSecretPrintsAsSomethingElse(t *testing.T) {
	m := Model{Key: Secret{testKey}}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	noKey(t, string(raw), fmt.Sprint(m), fmt.Sprintf("%+v %#v %s %q %x", m, m, m.Key, m.Key, m.Key))
}
