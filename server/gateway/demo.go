package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// demo is the built-in model: it needs no key and no network, and follows the
// script in the user's message one tool call a step. Its tokens are words.
type demo struct{ pause time.Duration }

const demoArgumentRunes = 16 // of a call's arguments in one chunk

// demoCall is a tool call on the wire, whole or a piece of one.
type demoCall struct {
	Index    *int         `json:"index,omitempty"` // only in chunks
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function demoFunction `json:"function"`
}

type demoFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

func (d demo) Stream(ctx context.Context, r Request, emit func(Chunk) error) error {
	talk := readTalk(r)
	text, action := demoAnswer(talk)
	finish, call, err := demoStep(talk, action)
	if err != nil {
		return err
	}
	spoken := int64(len(strings.Fields(text)))
	counts := map[string]int64{"prompt_tokens": talk.words, "completion_tokens": spoken, "total_tokens": talk.words + spoken}
	out := demoWriter{ctx: ctx, pause: d.pause, emit: emit, stamp: time.Now().Unix()}
	if !r.Stream {
		return out.whole(text, call, finish, counts)
	}
	return out.stream(text, call, finish, counts)
}

func demoStep(talk demoTalk, action *demoAction) (finish string, call *demoCall, err error) {
	if action == nil {
		return "stop", nil, nil
	}
	arguments, err := encode(action.arguments)
	if err != nil {
		return "", nil, err
	}
	// Unique in the conversation, and the same when a step is asked for again.
	id := fmt.Sprintf("call_demo_%d", talk.before+len(talk.results)+1)
	return "tool_calls", &demoCall{ID: id, Type: "function", Function: demoFunction{Name: action.tool, Arguments: string(arguments)}}, nil
}

type demoWriter struct {
	ctx   context.Context
	pause time.Duration
	emit  func(Chunk) error
	stamp int64
}

func (w demoWriter) whole(text string, call *demoCall, finish string, counts map[string]int64) error {
	message := map[string]any{"role": "assistant", "content": text}
	if call != nil {
		message["tool_calls"] = []*demoCall{call}
	}
	return w.send("chat.completion", []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}}, counts)
}

func (w demoWriter) stream(text string, call *demoCall, finish string, counts map[string]int64) error {
	if err := w.delta(map[string]any{"role": "assistant", "content": ""}, nil); err != nil {
		return err
	}
	for _, word := range strings.SplitAfter(text, " ") {
		if err := w.wait(); err != nil {
			return err
		}
		if err := w.delta(map[string]any{"content": word}, nil); err != nil {
			return err
		}
	}
	if call != nil {
		if err := w.call(*call); err != nil {
			return err
		}
	}
	if err := w.delta(map[string]any{}, &finish); err != nil {
		return err
	}
	return w.send("chat.completion.chunk", []any{}, counts)
}

// call sends the name first and the arguments in pieces, as providers do.
func (w demoWriter) call(call demoCall) error {
	first, rest := 0, []rune(call.Function.Arguments)
	call.Index, call.Function.Arguments = &first, ""
	for {
		if err := w.delta(map[string]any{"tool_calls": []demoCall{call}}, nil); err != nil || len(rest) == 0 {
			return err
		}
		n := min(demoArgumentRunes, len(rest))
		call = demoCall{Index: &first, Function: demoFunction{Arguments: string(rest[:n])}}
		rest = rest[n:]
	}
}

func (w demoWriter) delta(delta map[string]any, finish *string) error {
	return w.send("chat.completion.chunk", []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}, nil)
}

func (w demoWriter) send(object string, choices []any, counts map[string]int64) error {
	value := map[string]any{"id": "chatcmpl-demo", "object": object, "created": w.stamp, "model": DemoModel, "choices": choices}
	if counts != nil {
		value["usage"] = counts
	}
	raw, err := encode(value)
	if err != nil {
		return err
	}
	chunk, err := newChunk(raw)
	if err != nil {
		return err
	}
	return w.emit(chunk)
}

func (w demoWriter) wait() error {
	if w.pause <= 0 {
		return w.ctx.Err()
	}
	timer := time.NewTimer(w.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}
