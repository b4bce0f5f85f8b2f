package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// assembly puts an answer together from its chunks.
type assembly struct {
	step    int
	onDelta func(Delta)
	text    strings.Builder
	calls   []*building
	byIndex map[int]int // the provider's index -> place in calls, for the latest call there
	finish  string
	usage   *Usage
	size    int
}

type building struct {
	id, name  string
	arguments strings.Builder
}

func newAssembly(step int, onDelta func(Delta)) *assembly {
	if onDelta == nil {
		onDelta = func(Delta) {}
	}
	return &assembly{step: step, onDelta: onDelta, byIndex: map[int]int{}}
}

type wireChunk struct {
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content   *string    `json:"content"`
			ToolCalls []callPart `json:"tool_calls"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type callPart struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

func (a *assembly) event(data []byte) error {
	var chunk wireChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return &Error{Kind: ErrCut, Code: "answer_not_readable", Err: fmt.Errorf("a part of the answer is not as the format says: %T", err)}
	}
	if isSet(chunk.Error) {
		return midStream(chunk.Error)
	}
	a.count(chunk.Usage)
	for _, choice := range chunk.Choices {
		if choice.Index != 0 { // never asked for more than one
			continue
		}
		if choice.FinishReason != nil {
			a.finish = *choice.FinishReason
		}
		if text := choice.Delta.Content; text != nil && *text != "" {
			a.text.WriteString(*text)
			a.size += len(*text)
			a.onDelta(Delta{Text: *text})
		}
		for _, part := range choice.Delta.ToolCalls {
			a.part(part)
		}
		if a.size > maxAnswer {
			return tooLarge("the answer", maxAnswer)
		}
		if len(a.calls) > maxCalls {
			return &Error{Kind: ErrRefused, Code: "answer_too_large", Err: fmt.Errorf("more than %d tool calls", maxCalls)}
		}
	}
	return nil
}

// part adds to the call it belongs to, or begins one.
func (a *assembly) part(p callPart) {
	place := a.place(p)
	call := a.calls[place]
	if call.id == "" {
		call.id = p.ID
	}
	if call.name == "" {
		call.name = p.Function.Name
	}
	arguments := argumentText(p.Function.Arguments)
	call.arguments.WriteString(arguments)
	a.size += len(p.ID) + len(p.Function.Name) + len(arguments)
	a.onDelta(Delta{Call: &CallDelta{Index: place, Name: p.Function.Name, Arguments: arguments}})
}

// place finds the call a part belongs to. By its index; but some providers
// leave the index out, and some send several whole calls under index 0.
func (a *assembly) place(p callPart) int {
	index, known := len(a.calls)-1, len(a.calls) > 0
	if p.Index != nil {
		index, known = a.byIndex[*p.Index]
	}
	if known && !a.calls[index].endsBefore(p) {
		return index
	}
	a.calls = append(a.calls, &building{})
	place := len(a.calls) - 1
	if p.Index != nil {
		a.byIndex[*p.Index] = place
	}
	return place
}

// endsBefore is true when a part cannot belong to this call: it names another
// id, another tool, or comes after arguments that are complete.
func (b *building) endsBefore(p callPart) bool {
	if p.Function.Name == "" {
		return false
	}
	if p.ID != "" && b.id != "" {
		return p.ID != b.id
	}
	return b.name != "" && (p.Function.Name != b.name || isObject(b.arguments.String()))
}

// count keeps the last numbers: some providers send running totals.
func (a *assembly) count(raw json.RawMessage) {
	var counts struct {
		Input  *int64 `json:"prompt_tokens"`
		Output *int64 `json:"completion_tokens"`
	}
	if isSet(raw) && json.Unmarshal(raw, &counts) == nil && (counts.Input != nil || counts.Output != nil) {
		a.usage = &Usage{InputTokens: counts.Input, OutputTokens: counts.Output}
	}
}

func (a *assembly) complete() Answer {
	answer := Answer{Text: a.text.String(), Finish: a.finish, Usage: a.usage}
	taken := map[string]bool{}
	for i, b := range a.calls {
		call := Call{ID: b.id, Name: b.name, Arguments: b.arguments.String()}
		for again := 0; call.ID == "" || taken[call.ID]; again++ {
			call.ID = ownID(a.step, i, again)
		}
		taken[call.ID] = true
		if strings.TrimSpace(call.Arguments) == "" {
			call.Arguments = "{}" // what providers send for a tool without parameters
		}
		call.Invalid = !isObject(call.Arguments)
		answer.Calls = append(answer.Calls, call)
	}
	return answer
}

// ownID is not random, so that the same answer has the same ids. again is above
// zero only where the provider itself gave out an id of this form.
func ownID(step, index, again int) string {
	if again == 0 {
		return fmt.Sprintf("call_%d_%d", step, index)
	}
	return fmt.Sprintf("call_%d_%d_%d", step, index, again)
}

// argumentText takes the text that the format prescribes, and the object that
// some providers send in its place.
func argumentText(raw json.RawMessage) string {
	var text string
	if !isSet(raw) {
		return ""
	}
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func isObject(text string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &object) == nil && object != nil
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
