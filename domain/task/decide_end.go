package task

import (
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
)

// Decide implements event.Command.
func (c EndRun) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if _, isAccount := event.ActorAccount(meta.Actor); isAccount {
		return nil, fault.New(fault.Denied, "end_run_denied", "a task's run is ended by the worker that holds it: cancel the run instead")
	}
	terminal, err := event.StateOf[run.State](view, run.Stream(c.Run, c.Space, c.Task)).End(c.End, meta.Actor)
	if err != nil {
		return nil, err
	}
	return c.changes(view, terminal)
}

// changes ends the run and its attempt together: a process that dies leaves both or neither.
func (c EndRun) changes(view event.View, terminal event.Event) ([]event.Change, error) {
	state := event.StateOf[State](view, Stream(c.Task, c.Space))
	if !state.TurnStarted(c.Run) {
		return nil, fault.New(fault.NotFound, "attempt_not_found", "run %s is not the active attempt of task %s: read the task again", c.Run, c.Task)
	}
	return []event.Change{
		{Stream: run.Stream(c.Run, c.Space, c.Task), Events: []event.Event{terminal}},
		{Stream: Stream(c.Task, c.Space), Events: []event.Event{AttemptEnded{Run: c.Run, Outcome: c.End.Outcome}}},
	}, nil
}

// Decide implements event.Command.
func (c CancelRun) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if err := requireDoer(view, c.Space, meta); err != nil {
		return nil, err
	}
	stream := run.Stream(c.Run, c.Space, c.Task)
	state := event.StateOf[run.State](view, stream)
	if state.Status.Claimed() {
		if events := state.RequestCancel(meta.Actor); len(events) > 0 {
			return []event.Change{{Stream: stream, Events: events}}, nil
		}
		return nil, nil
	}
	// Nobody holds it: there is nobody to ask, and the system may end it at once.
	end := run.Ending{Outcome: run.StatusCancelled, Epoch: state.Epoch}
	terminal, err := state.End(end, event.System)
	if err != nil {
		return nil, err
	}
	return EndRun{Task: c.Task, Space: c.Space, Run: c.Run, End: end}.changes(view, terminal)
}
