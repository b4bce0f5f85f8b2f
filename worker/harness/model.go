package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"cairn/db/runtoken"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
	"cairn/worker/agent"
	"cairn/worker/model"
	"cairn/worker/tool"
)

// Delta is a piece of an answer as it comes. It is no fact: an answer that is cut is asked for again, under
// the next Attempt, and what counts is run.model_answered.
type Delta struct {
	Run, Space  event.ID
	Topic       event.ID // of the run: its conversation or its task
	Epoch, Step int64
	Attempt     int // 1, 2, ...
	model.Delta
}

const (
	maxBackoff = 20 * time.Second
	tokenLife  = time.Hour // of one call's token
)

// callModel asks until there is an answer, a refusal, or no attempt left.
func (l *loop) callModel(state run.State) (over bool, err error) {
	if err := l.history(); err != nil {
		return l.missing(err)
	}
	request := l.request(state)
	pause := l.Backoff
	for attempt := 1; ; attempt++ {
		begin := time.Now()
		answer, first, err := l.ask(state, request, attempt)
		if err == nil {
			return l.answered(state, answer, first, time.Since(begin))
		}
		if l.orders.work.Err() != nil {
			return false, nil
		}
		trouble, ok := errors.AsType[*model.Error](err)
		switch {
		case !ok:
			return true, err
		case errors.Is(err, model.ErrFenced) && attempt == 1:
			if _, err := l.fold(); err != nil { // the log decides, not the gateway's view of it
				return true, err
			}
		case errors.Is(err, model.ErrRefused):
			return true, l.fail(run.CodeModelRefused, err)
		}
		if attempt >= l.Attempts {
			return true, l.fail(run.CodeModelUnavailable, fmt.Errorf("%d attempts, the last one: %w", attempt, err))
		}
		if trouble.RetryAfter != nil {
			pause = max(pause, min(*trouble.RetryAfter, maxBackoff))
		}
		l.orders.pause(pause)
		if l.orders.Why() != nil {
			return false, nil
		}
		pause = min(2*pause, maxBackoff)
	}
}

func (l *loop) fail(code string, err error) error {
	return l.end(run.Ending{Outcome: run.StatusFailed, Code: code, Message: bounded(err.Error())})
}

// ask streams one answer. first is the time to its first piece, nil when it had none.
func (l *loop) ask(state run.State, request model.Request, attempt int) (model.Answer, *int64, error) {
	expires := time.Now().Add(tokenLife)
	if expires.After(state.Deadline) {
		expires = state.Deadline.Add(time.Minute)
	}
	token := runtoken.Mint(l.DB.Keys().RunTokenKey(), l.claim.Run.String(), l.claim.Epoch, expires)
	begin := time.Now()
	var first *int64
	answer, err := l.Model.Stream(l.orders.work, token, request, func(d model.Delta) {
		if first == nil {
			us := time.Since(begin).Microseconds()
			first = &us
		}
		if l.OnDelta != nil {
			l.OnDelta(Delta{
				Run: l.claim.Run, Topic: l.claim.Topic(), Space: l.claim.Space, Epoch: l.claim.Epoch,
				Step: int64(request.Step), Attempt: attempt, Delta: d,
			})
		}
	})
	return answer, first, err
}

// answered records the answer. One that the log cannot hold is the model's fault.
func (l *loop) answered(state run.State, answer model.Answer, first *int64, took time.Duration) (over bool, err error) {
	step := int64(len(state.Steps) + 1)
	command := run.RecordAnswer{
		Target: l.claim.Target, Epoch: l.claim.Epoch, Step: step, Model: state.Model, Text: clean(answer.Text),
		Calls: wishes(step, answer.Calls), Finish: finish(answer.Finish), FirstTokenUS: first, DurationUS: took.Microseconds(),
	}
	if answer.Usage != nil {
		command.Usage = run.Usage{InputTokens: answer.Usage.InputTokens, OutputTokens: answer.Usage.OutputTokens}
	}
	err = l.whenErased(l.record(command, "step_out_of_order", "call_open", "step_final"))
	if fault.Is(err, fault.Invalid) {
		return true, l.fail(run.CodeModelRefused, fmt.Errorf("the model's answer cannot be recorded: %w", err))
	}
	return false, err
}

// wishes gives every call an id of our own: models repeat theirs over steps, or over turns.
func wishes(step int64, calls []model.Call) []run.CallWish {
	wishes := make([]run.CallWish, len(calls))
	for i, call := range calls {
		wishes[i] = run.CallWish{ID: fmt.Sprintf("call_%d_%d", step, i), Tool: name(call.Name), Arguments: clean(call.Arguments)}
	}
	return wishes
}

// name keeps a tool name recordable; one that had to be changed is granted to nobody, and the model is told.
func name(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:/@+-", r)) {
			return r
		}
		return '_'
	}, text)
	if text == "" {
		return "unnamed"
	}
	return text[:min(len(text), 64)]
}

// finish is the provider's word, which may be missing.
func finish(word string) string {
	if word == "" {
		return "unknown"
	}
	return name(word)
}

func clean(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
}

// bounded keeps a message far below what an event may hold.
func bounded(text string) string {
	const most = 8 << 10
	text = clean(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " [...]"
	}
	return text
}

func (l *loop) request(state run.State) model.Request {
	request := model.Request{Model: state.Model, Step: len(state.Steps) + 1}
	for _, m := range agent.Conversation(state, l.earlier()) {
		message := model.Message{Role: string(m.Role), Content: m.Text, CallID: m.Call}
		for _, call := range m.Calls {
			message.Calls = append(message.Calls, model.Call{ID: call.ID, Name: call.Tool, Arguments: call.Arguments})
		}
		request.Messages = append(request.Messages, message)
	}
	for _, t := range agent.Tools(state, tool.Offered()) {
		request.Tools = append(request.Tools, model.Tool{Name: t.Name, Description: t.Description, Parameters: json.RawMessage(t.Parameters)})
	}
	return request
}
