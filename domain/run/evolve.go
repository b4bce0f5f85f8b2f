package run

import (
	"slices"

	"cairn/domain/event"
)

// Evolve folds one event.
func Evolve(s State, e event.Event) State {
	if queued, ok := e.(Queued); ok && s.Status == "" {
		return fromQueued(queued)
	}
	if s.Status == "" || s.Status.Terminal() {
		return s
	}
	switch e := e.(type) {
	case Started:
		s.Status, s.Epoch, s.Worker, s.Host, s.Deadline = StatusStarting, e.Epoch, e.Worker, e.Host, e.Deadline
	case SandboxPrepared:
		s.Status = StatusRunning
		s.Sandbox = Sandbox{Epoch: e.Epoch, Host: e.Host, Backend: e.Backend, Cgroup: e.Cgroup, Upper: e.Upper}
	case SandboxClosed:
		s.Sandbox.Closed = s.Sandbox.Closed || s.Sandbox.Epoch == e.Epoch
	case ModelAnswered:
		s.Status = StatusRunning
		s.Steps = append(slices.Clip(s.Steps), fromAnswer(e))
	case ToolCalled:
		return s.withCall(e.Call, func(c *Call) { c.State, c.CalledEpoch = Called, e.Epoch })
	case ToolReturned:
		return s.withCall(e.Call, func(c *Call) { c.State, c.Result = Returned, fromReturned(e) })
	case CancelRequested:
		s.CancelRequested = true
	case ChangesRecorded:
		s.ChangesEpoch = e.Epoch
	case WorkerLost, Released:
		s.Status, s.Worker, s.Host = StatusQueued, "", ""
	default:
		return s.ended(e)
	}
	return s
}

func (s State) ended(e event.Event) State {
	switch e := e.(type) {
	case Succeeded:
		s.Status, s.Answer = StatusSucceeded, e.Answer
	case Failed:
		s.Status, s.Code, s.Message = StatusFailed, e.Code, e.Message
	case Cancelled:
		s.Status = StatusCancelled
	}
	return s
}

func fromQueued(e Queued) State {
	return State{
		Status: StatusQueued, Conversation: e.Conversation, Turn: e.Turn, Task: e.Task, Attempt: e.AttemptNumber(), RetryOf: e.RetryOf, Continues: e.Continues, Agent: e.Agent, Revision: e.Revision,
		Model: e.Model, Prompt: e.Prompt, Instructions: e.Instructions, Tools: e.Tools, Limits: e.Limits,
		Source: e.Source, Mounts: e.Mounts, Queue: e.Queue, Egress: e.Egress, SpaceEgress: e.SpaceEgress,
	}
}

func fromAnswer(e ModelAnswered) Step {
	step := Step{Text: e.Text, Finish: e.Finish, Calls: make([]Call, 0, len(e.Calls))}
	for _, call := range e.Calls {
		step.Calls = append(step.Calls, Call{ID: call.ID, Tool: call.Tool, Arguments: call.Arguments, State: Asked})
	}
	return step
}

func fromReturned(e ToolReturned) Result {
	return Result{Outcome: e.Outcome, ExitCode: e.ExitCode, Output: e.Output, OutputBytes: e.OutputBytes, Truncated: e.Truncated}
}

// withCall returns the state with one call changed, in copies: the old state may still be read.
func (s State) withCall(id string, change func(*Call)) State {
	step, call, ok := s.locate(id)
	if !ok {
		return s
	}
	s.Steps = slices.Clone(s.Steps)
	s.Steps[step].Calls = slices.Clone(s.Steps[step].Calls)
	change(&s.Steps[step].Calls[call])
	return s
}

// locate finds a call; the newest step comes first, since that is where work goes on.
func (s State) locate(id string) (step, call int, ok bool) {
	for step := len(s.Steps) - 1; step >= 0; step-- {
		same := func(c Call) bool { return c.ID == id }
		if call := slices.IndexFunc(s.Steps[step].Calls, same); call >= 0 {
			return step, call, true
		}
	}
	return 0, 0, false
}

// FindCall returns a call by its id.
func (s State) FindCall(id string) (Call, bool) {
	step, call, ok := s.locate(id)
	if !ok {
		return Call{}, false
	}
	return s.Steps[step].Calls[call], true
}
