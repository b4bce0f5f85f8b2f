package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

type demoMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"`
	ToolCalls  []demoCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type demoReply struct {
	Choices []struct {
		Message      demoMessage `json:"message"`
		FinishReason string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	} `json:"usage"`
}

func demoTools(names ...string) []any {
	var tools []any
	for _, name := range names {
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": name, "parameters": map[string]any{"type": "object"}}})
	}
	return tools
}

// askDemo asks once, not streamed.
func askDemo(t *testing.T, b *bench, messages []demoMessage, tools []any) (demoMessage, string) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"model": "demo", "messages": messages, "tools": tools})
	if err != nil {
		t.Fatal(err)
	}
	resp, body := b.chat(string(raw))
	var reply demoReply
	if err := json.Unmarshal([]byte(body), &reply); err != nil || resp.StatusCode != 200 || len(reply.Choices) != 1 || reply.Usage == nil {
		t.Fatalf("%d %v %s", resp.StatusCode, err, body)
	}
	return reply.Choices[0].Message, reply.Choices[0].FinishReason
}

func TestDemoRunsTheScriptOneCallAStep(t *testing.T) {
	b := newBench(t)
	messages := []demoMessage{
		{Role: "user", Content: "$ earlier"},
		{Role: "assistant", Content: "…"},
		{Role: "tool", Content: "exit code: 0", ToolCallID: "call_demo_1"},
		{Role: "user", Content: []any{map[string]any{"type": "text", "text": "Please do this:\r\n$ go vet ./...\r\nwrite a/N.md: one: two\n  $ indented is text\nask: shall I?\nread a/N.md\n$ false"}}},
	}
	want := []struct{ id, tool, arguments, result string }{
		{"call_demo_2", "shell", `{"command":"go vet ./..."}`, "exit code: 0\n\nok all\nsecond\nthird\nfourth"},
		{"call_demo_3", "write", `{"content":"one: two","path":"a/N.md"}`, "wrote 8 bytes"},
		{"call_demo_4", "read", `{"path":"a/N.md"}`, ""},
		{"call_demo_5", "shell", `{"command":"false"}`, "exit code: unknown (killed)"},
	}
	for i, w := range want {
		m, finish := askDemo(t, b, messages, demoTools("shell", "write", "read", "edit"))
		if finish != "tool_calls" || len(m.ToolCalls) != 1 {
			t.Fatalf("step %d: %s %+v", i, finish, m)
		}
		c := m.ToolCalls[0]
		if c.ID != w.id || c.Type != "function" || c.Function.Name != w.tool || c.Function.Arguments != w.arguments || c.Index != nil {
			t.Fatalf("step %d: %+v", i, c)
		}
		messages = append(messages, m, demoMessage{Role: "tool", Content: w.result, ToolCallID: c.ID})
	}
	m, finish := askDemo(t, b, messages, demoTools("shell", "write", "read"))
	summary := "Done, 4 of 4 steps:\n1. $ go vet ./...\n   exit code: 0\n   ok all\n   second\n   third\n2. write a/N.md: one: two\n   wrote 8 bytes\n" +
		"3. read a/N.md\n   (no output)\n4. $ false\n   exit code: unknown (killed)\n"
	if finish != "stop" || len(m.ToolCalls) != 0 || m.Content != summary {
		t.Fatalf("%s %+v\nwant %q", finish, m, summary)
	}
}

func TestDemoExplainsItself(t *testing.T) {
	b := newBench(t)
	for _, text := range []string{"hello", "", "$ ", "$", "$x", "write nothing", "write : x", "read ", "ask: shall I?"} {
		m, finish := askDemo(t, b, []demoMessage{{Role: "user", Content: text}}, demoTools("shell", "write", "read"))
		if finish != "stop" || m.Content != demoHelp || len(m.ToolCalls) != 0 {
			t.Fatalf("%q: %s %+v", text, finish, m)
		}
	}
}

func TestDemoNamesTheToolThatIsMissing(t *testing.T) {
	m, finish := askDemo(t, newBench(t), []demoMessage{{Role: "user", Content: "$ ls"}}, nil)
	if text, _ := m.Content.(string); finish != "stop" || !strings.Contains(text, `"shell"`) || len(m.ToolCalls) != 0 {
		t.Fatalf("%s %+v", finish, m)
	}
}

func TestDemoStreams(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("é<&", 20)
	body := `{"model":"demo","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"$ echo ` + long + `"}],"tools":[{"type":"function","function":{"name":"shell"}}]}`
	resp, text := b.chat(body)
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%v", resp.Header)
	}
	var said, arguments, finish string
	pieces, usage := 0, ""
	all := events(text)
	for _, data := range all[:len(all)-1] {
		var c struct {
			Choices []struct {
				Delta struct {
					Content   string     `json:"content"`
					ToolCalls []demoCall `json:"tool_calls"`
				} `json:"delta"`
				FinishReason string `json:"finish_reason"`
			} `json:"choices"`
			Usage json.RawMessage `json:"usage"`
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatal(err, data)
		}
		for _, choice := range c.Choices {
			said += choice.Delta.Content
			finish += choice.FinishReason
			for _, call := range choice.Delta.ToolCalls {
				arguments += call.Function.Arguments
				pieces++
			}
		}
		usage += string(c.Usage)
	}
	if said != "Step 1 of 1: $ echo "+long+"\n" || arguments != `{"command":"echo `+long+`"}` || pieces < 4 || finish != "tool_calls" {
		t.Fatalf("%q %q %d %q", said, arguments, pieces, finish)
	}
	if !strings.Contains(usage, `"prompt_tokens":3`) || all[len(all)-1] != "[DONE]" {
		t.Fatalf("%s %q", usage, all[len(all)-1])
	}
	c := b.observed()
	if c.Outcome != "ok" || c.Run != (Run{testRun, 2}) || c.Model != "demo" || c.Upstream != "demo" || *c.InputTokens != 3 || *c.OutputTokens != 7 || c.FirstToken == nil {
		t.Fatalf("%+v", c)
	}
}

func TestDemoPausesBetweenWordsAndStopsWithTheCaller(t *testing.T) {
	b := newBench(t)
	b.gateway.catalogue[0].upstream = demo{pause: 5 * time.Millisecond}
	began := time.Now()
	b.chat(`{"model":"demo","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	if words := len(strings.Fields(demoHelp)); time.Since(began) < time.Duration(words)*5*time.Millisecond {
		t.Fatalf("%d words came after %v", words, time.Since(began))
	}
}
