package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cairn/domain/event"
	"cairn/domain/run"
)

func ended(prompt, answer string) run.State {
	return run.State{Status: run.StatusSucceeded, Prompt: event.Seal(prompt), Answer: event.Seal(answer)}
}

func flat(messages []Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s|%s", m.Role, m.Text)
		for _, call := range m.Calls {
			fmt.Fprintf(&b, "|%s %s %s", call.ID, call.Tool, call.Arguments)
		}
		if m.Call != "" {
			fmt.Fprintf(&b, "|for %s", m.Call)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestConversationTellsTurnsAndSteps(t *testing.T) {
	state := run.State{
		Prompt: event.Seal("now"), Instructions: event.Seal("Be brief."), Tools: []string{"shell"},
		Steps: []run.Step{{Text: event.Seal("I look."), Calls: []run.Call{
			{ID: "c1", Tool: "shell", Arguments: event.Seal(`{"command":"ls"}`), State: run.Returned, Result: run.Result{Output: event.Seal("exit code: 0\na")}},
			{ID: "c2", Tool: "shell", Arguments: event.Seal("not json"), State: run.Asked},
		}}},
	}
	failed := run.State{Status: run.StatusFailed, Code: run.CodeLimitWall, Prompt: event.Seal("second")}
	cancelled := run.State{Status: run.StatusCancelled, Prompt: event.Seal("third").AsErased()}
	got := flat(Conversation(state, []run.State{ended("first", "done"), failed, cancelled}))
	want := "system|Be brief.\n\n" + place + `
user|first
assistant|done
user|second
assistant|[This turn ended without an answer: it failed with limit_wall. Its changes to files are not in the workspace.]
user|[erased]
assistant|[This turn ended without an answer: it was cancelled. Its changes to files are not in the workspace.]
user|now
assistant|I look.|c1 shell {"command":"ls"}|c2 shell {"not_a_json_object":"not json"}
tool|exit code: 0
a|for c1
`
	if got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEarlierTurnsAreBounded(t *testing.T) {
	long := strings.Repeat("x", MaxEarlier)
	earlier := []run.State{ended("one", long), ended("two", long), ended("three", "short")}
	got := Conversation(run.State{Prompt: event.Seal("now")}, earlier)
	if len(got) != 3 || !strings.HasPrefix(got[0].Text, "[2 earlier turns") || !strings.HasSuffix(got[0].Text, "three") {
		t.Fatalf("%d messages: %.300s", len(got), flat(got))
	}
}

func TestOnlyGrantedToolsAreOffered(t *testing.T) {
	offered := []Tool{{Name: "shell"}, {Name: "read"}, {Name: "write"}}
	got := Tools(run.State{Tools: []string{"write", "shell"}}, offered)
	if len(got) != 2 || got[0].Name != "shell" || got[1].Name != "write" || len(offered) != 3 {
		t.Fatalf("got %v", got)
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(`{}`)
	f.Add(`[1]`)
	f.Add(`null`)
	f.Add("\x00\xff")
	f.Fuzz(func(t *testing.T, written string) {
		var object map[string]any
		if err := json.Unmarshal([]byte(arguments(run.Call{Arguments: event.Seal(written)})), &object); err != nil || object == nil {
			t.Fatalf("%q is shown as no object: %v", written, err)
		}
	})
}
