package gateway

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzDemo: whatever parseRequest accepts, the demo model answers with valid chunks.
func FuzzDemo(f *testing.F) {
	f.Add([]byte(`{"model":"demo","stream":true,"messages":[{"role":"user","content":"$ ls\nwrite a: b"},{"role":"tool","content":[{"text":"x"}]}],"tools":[{"function":{"name":"write"}}]}`))
	f.Add([]byte(`{"model":"demo","messages":[{"role":"tool"},{"role":"user","content":null}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, p := parseRequest(body)
		if p != nil {
			return
		}
		n := 0
		err := demo{}.Stream(t.Context(), r, func(c Chunk) error {
			n++
			if !json.Valid(c.Raw) {
				t.Fatalf("%q", c.Raw)
			}
			return nil
		})
		if err != nil || n == 0 || !r.Stream && n != 1 {
			t.Fatal(n, err)
		}
	})
}

// FuzzAnswer: no stream makes the reader fail otherwise than by an error, and
// no chunk holds the key.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("data: " + textChunk("a "+testKey) + "\n\ndata: " + endChunk + "\n\ndata: [DONE]\n\n"))
	f.Add([]byte(": c\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + `\u0073k` + testKey[2:] + "\"}}]}\r\n\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		u, g := &openAI{model: Model{Key: Secret{testKey}}}, newGuard(Secret{testKey})
		readEvents(bytes.NewReader(stream), func() {}, func(data []byte) error {
			c, err := u.chunk(bytes.Clone(data))
			if err != nil {
				return err
			}
			ready, err := g.pass(c)
			for _, c := range ready {
				if bytes.Contains(c.Raw, []byte(testKey)) {
					t.Fatalf("%q", c.Raw)
				}
			}
			return err
		})
	})
}
