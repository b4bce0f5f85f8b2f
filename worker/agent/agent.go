// Package agent is the pure part of the loop: what the model is told, as a function of the folded run and of
// the turns, or the attempts that it continues, before it. What to do next is domain/run.Next; doing it is the harness's.
//
//	system    the agent's instructions, and what is known about the place it works in
//	user      \  each earlier turn of the conversation, or attempt that is continued:
//	assistant /  its message and its answer, or how it ended without one
//	user         this run's message
//	assistant \  each step so far: what the model said and called,
//	tool      /  and what each call returned
//
// It may import the standard library and domain only.
package agent

import (
	"encoding/json"
	"fmt"
	"slices"

	"cairn/domain/event"
	"cairn/domain/run"
)

// Role says who speaks.
type Role string

// The roles, as the model protocols name them.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one entry of the conversation with the model.
type Message struct {
	Role  Role
	Text  string
	Calls []Call // of an assistant
	Call  string // of a tool's result: the id of the call that it answers
}

// Call is one tool call as the model is shown it again. Arguments is always a JSON object.
type Call struct {
	ID, Tool, Arguments string
}

// Tool is what the model may call. Parameters is a JSON Schema object.
type Tool struct {
	Name, Description string
	Parameters        json.RawMessage
}

// MaxEarlier bounds the text of earlier turns that the model is given, in bytes; the newest come first.
const MaxEarlier = 512 << 10

// Conversation is all that the model is told for the next step. earlier are the ended turns, or the attempts
// that this one continues, oldest first.
func Conversation(state run.State, earlier []run.State) []Message {
	var messages []Message
	if system := instructions(state); system != "" {
		messages = append(messages, Message{Role: System, Text: system})
	}
	messages = append(messages, past(earlier)...)
	messages = append(messages, Message{Role: User, Text: text(state.Prompt)})
	for _, step := range state.Steps {
		messages = append(messages, told(step)...)
	}
	return messages
}

// Tools are those of the offered that the run was granted.
func Tools(state run.State, offered []Tool) []Tool {
	return slices.DeleteFunc(slices.Clone(offered), func(t Tool) bool { return !slices.Contains(state.Tools, t.Name) })
}

const place = `Your tools act in a sealed sandbox on this machine: Linux, without network, as an unprivileged user. The work lies in /workspace; only changes there are kept. Other folders are read-only or temporary.`

func instructions(state run.State) string {
	own := text(state.Instructions)
	switch {
	case len(state.Tools) == 0:
		return own
	case own == "":
		return place
	}
	return own + "\n\n" + place
}

// past answers the newest earlier turns that fit, in their order, and says how many do not.
func past(earlier []run.State) []Message {
	from, size := len(earlier), 0
	for from > 0 {
		turn := earlier[from-1]
		size += len(turn.Prompt.Text()) + len(turn.Answer.Text())
		if size > MaxEarlier {
			break
		}
		from--
	}
	var messages []Message
	for i, turn := range earlier[from:] {
		prompt := text(turn.Prompt)
		if i == 0 && from > 0 {
			prompt = fmt.Sprintf("[%d earlier turns of this conversation are left out, because they are too long.]\n\n%s", from, prompt)
		}
		messages = append(messages, Message{Role: User, Text: prompt}, Message{Role: Assistant, Text: outcome(turn)})
	}
	return messages
}

func outcome(turn run.State) string {
	switch {
	case turn.Status == run.StatusSucceeded:
		return text(turn.Answer)
	case !turn.Task.IsZero():
		return unfinished(turn)
	case turn.Status == run.StatusFailed:
		return fmt.Sprintf("[This turn ended without an answer: it failed with %s. Its changes to files are not in the workspace.]", turn.Code)
	}
	return "[This turn ended without an answer: it was cancelled. Its changes to files are not in the workspace.]"
}

func told(step run.Step) []Message {
	said := Message{Role: Assistant, Text: text(step.Text)}
	results := make([]Message, 0, len(step.Calls))
	for _, call := range step.Calls {
		said.Calls = append(said.Calls, Call{ID: call.ID, Tool: call.Tool, Arguments: arguments(call)})
		if call.State == run.Returned {
			results = append(results, Message{Role: ToolRole, Call: call.ID, Text: text(call.Result.Output)})
		}
	}
	return append([]Message{said}, results...)
}

// arguments shows the model what it wrote, as an object in any case: servers refuse what is none.
func arguments(call run.Call) string {
	written := text(call.Arguments)
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(written), &object) == nil && object != nil {
		return written
	}
	wrapped, _ := json.Marshal(map[string]string{"not_a_json_object": written}) // a map of strings cannot fail
	return string(wrapped)
}

// text is the content, or says that it is gone.
func text(s event.Sealed) string {
	if s.Erased() {
		return "[erased]"
	}
	return s.Text()
}
