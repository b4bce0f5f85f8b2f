package run

import (
	"slices"
	"strconv"

	"cairn/domain/agent"
	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
)

const maxCalls = 128

// Decide implements event.Command.
func (c RecordAnswer) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, c.Stream())
	if err := state.requireHolder(c.Epoch, meta.Actor); err != nil {
		return nil, err
	}
	if err := state.requireStep(c.Step); err != nil {
		return nil, err
	}
	err := check.First(
		agent.CheckModel("model", c.Model), check.Text("text", c.Text, 0, check.MaxContent),
		check.Name("finish", c.Finish, 64), c.Usage.check("usage"),
		checkUnknown("first_token_us", c.FirstTokenUS), check.Range("duration_us", c.DurationUS, 0, 1<<53),
		state.checkCalls("calls", c.Calls))
	if err != nil {
		return nil, err
	}
	answered := ModelAnswered{
		Epoch: c.Epoch, Step: c.Step, Model: c.Model, Text: event.Seal(c.Text), Calls: []AskedCall{}, Usage: c.Usage,
		Finish: c.Finish, FirstTokenUS: c.FirstTokenUS, DurationUS: c.DurationUS,
	}
	for _, call := range c.Calls {
		answered.Calls = append(answered.Calls, AskedCall{ID: call.ID, Tool: call.Tool, Arguments: event.Seal(call.Arguments)})
	}
	return c.change(answered), nil
}

// requireStep refuses an answer that does not follow: a step comes first, or after one whose calls have
// all returned.
func (s State) requireStep(step int64) error {
	steps := int64(len(s.Steps))
	if step != steps+1 {
		return fault.New(fault.Conflict, "step_out_of_order", "step %d does not follow, the run has %d: fold it again", step, steps)
	}
	if steps >= s.Limits.ModelCalls {
		return fault.New(fault.Exhausted, CodeLimitModelCalls, "the run may call its model %d times and did: end it with this code", s.Limits.ModelCalls)
	}
	if steps == 0 {
		return nil
	}
	last := s.Steps[steps-1]
	if len(last.Calls) == 0 {
		return fault.New(fault.Conflict, "step_final", "step %d asked for no tool and is the answer: end the run", steps)
	}
	for _, call := range last.Calls {
		if call.State != Returned {
			return fault.New(fault.Conflict, "call_open", "call %q has not returned: record what it came to first", call.ID)
		}
	}
	return nil
}

func (s State) checkCalls(field string, calls []CallWish) error {
	if len(calls) > maxCalls {
		return fault.Field(field, "%d calls in one answer, the limit is %d", len(calls), maxCalls)
	}
	for i, call := range calls {
		at := field + "[" + strconv.Itoa(i) + "]"
		err := check.First(check.Name(at+".id", call.ID, 128), check.Name(at+".tool", call.Tool, 64),
			check.Text(at+".arguments", call.Arguments, 0, check.MaxContent))
		if err != nil {
			return err
		}
		same := func(other CallWish) bool { return other.ID == call.ID }
		if _, taken := s.FindCall(call.ID); taken || slices.ContainsFunc(calls[:i], same) {
			return fault.Field(at+".id", "%q is taken in this run: make it unique", call.ID)
		}
	}
	return nil
}

func (u Usage) check(field string) error {
	return check.First(checkUnknown(field+".input_tokens", u.InputTokens), checkUnknown(field+".output_tokens", u.OutputTokens))
}

// checkUnknown refuses a negative number; null is fine, it means unknown.
func checkUnknown(field string, value *int64) error {
	if value == nil {
		return nil
	}
	return check.Range(field, *value, 0, 1<<53)
}

// Decide implements event.Command.
func (c CallTool) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, c.Stream())
	if err := state.requireHolder(c.Epoch, meta.Actor); err != nil {
		return nil, err
	}
	step, at, ok := state.locate(c.Call)
	if !ok {
		return nil, callNotFound(c.Call)
	}
	call := state.Steps[step].Calls[at]
	if err := state.requireCallable(call, c.Again); err != nil {
		return nil, err
	}
	return c.change(ToolCalled{Epoch: c.Epoch, Step: int64(step + 1), Call: call.ID, Tool: call.Tool}), nil
}

func callNotFound(id string) error {
	return fault.New(fault.NotFound, "call_not_found", "the model asked for no call %.80q in this run: record its answer first", id)
}

func (s State) requireCallable(call Call, again bool) error {
	switch {
	case s.CancelRequested:
		return fault.New(fault.Conflict, "cancel_requested", "the run is being cancelled: call nothing more, end it")
	case s.Sandbox.Epoch != s.Epoch:
		return fault.New(fault.Conflict, "sandbox_missing", "no sandbox is recorded for epoch %d: a tool acts only inside one", s.Epoch)
	case !s.grants(call.Tool):
		return fault.New(fault.Denied, "tool_not_granted", "the run has the tools %v, not %.80q: return the call as an error", s.Tools, call.Tool)
	case call.State == Returned:
		return fault.New(fault.Conflict, "call_returned", "call %q has returned: it is not made twice", call.ID)
	case call.State == Asked && !again:
		return nil
	case call.State == Called && again && call.CalledEpoch < s.Epoch && agent.ReadOnly(call.Tool):
		return nil
	case call.State == Called && call.CalledEpoch < s.Epoch:
		return fault.New(fault.Conflict, "call_in_doubt", "call %q may have acted under epoch %d: call a read-only tool with again, return others as in_doubt", call.ID, call.CalledEpoch)
	case again:
		return fault.New(fault.Conflict, "call_not_in_doubt", "call %q is not in doubt: again is for calls of an older epoch that never returned", call.ID)
	}
	return fault.New(fault.Conflict, "call_called", "call %q is under way: wait for what it returns", call.ID)
}

// Decide implements event.Command.
func (c ReturnTool) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, c.Stream())
	if err := state.requireHolder(c.Epoch, meta.Actor); err != nil {
		return nil, err
	}
	call, ok := state.FindCall(c.Call)
	if !ok {
		return nil, callNotFound(c.Call)
	}
	err := check.First(
		check.OneOf("outcome", c.Outcome, OutcomeOK, OutcomeError, OutcomeTimeout, OutcomeCancelled, OutcomeInDoubt),
		check.Text("output", c.Output, 0, check.MaxContent),
		check.Range("output_bytes", c.OutputBytes, 0, 1<<53), check.Range("duration_us", c.DurationUS, 0, 1<<53),
		state.requireReturnable(call, c.Outcome))
	if err != nil {
		return nil, err
	}
	return c.change(ToolReturned{
		Epoch: c.Epoch, Call: call.ID, Tool: call.Tool, Outcome: c.Outcome, ExitCode: c.ExitCode,
		Output: event.Seal(c.Output), OutputBytes: c.OutputBytes, Truncated: c.Truncated, DurationUS: c.DurationUS,
	}), nil
}

func (s State) requireReturnable(call Call, outcome string) error {
	switch {
	case call.State == Returned:
		return fault.New(fault.Conflict, "call_returned", "call %q has returned: its result is final", call.ID)
	case call.State == Asked && outcome != OutcomeError && outcome != OutcomeCancelled:
		return fault.New(fault.Conflict, "call_not_called", "call %q was never made: call it first, or return it as error or cancelled", call.ID)
	case call.State == Called && call.CalledEpoch < s.Epoch && outcome != OutcomeInDoubt:
		return fault.New(fault.Conflict, "call_in_doubt", "call %q was made under epoch %d, nobody knows its end: return it as in_doubt", call.ID, call.CalledEpoch)
	}
	return nil
}
