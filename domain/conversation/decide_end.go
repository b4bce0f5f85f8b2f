package conversation

import (
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
)

// Decide implements event.Command.
func (c EndTurn) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if _, isAccount := event.ActorAccount(meta.Actor); isAccount {
		return nil, fault.New(fault.Denied, "end_turn_denied", "a turn is ended by the worker that holds its run: cancel the run instead")
	}
	stream := run.Stream(c.Run, c.Space, c.Conversation)
	terminal, err := event.StateOf[run.State](view, stream).End(c.End, meta.Actor)
	if err != nil {
		return nil, err
	}
	state, err := requireOpened(view, c.Conversation, c.Space)
	if err != nil {
		return nil, err
	}
	if !state.TurnStarted(c.Run) {
		return nil, fault.New(fault.Conflict, "turn_not_started", "the turn of run %s has not started: cancel the run instead", c.Run)
	}
	ended := TurnEnded{Turn: state.Active.Turn, Run: c.Run, Outcome: c.End.Outcome}
	return c.changes(stream, terminal, startNext(state, ended)), nil
}

func (c EndTurn) changes(stream event.Ref, terminal event.Event, turns []event.Event) []event.Change {
	return []event.Change{
		{Stream: stream, Events: []event.Event{terminal}},
		{Stream: Stream(c.Conversation, c.Space), Events: turns},
	}
}

// Decide implements event.Command.
func (c CancelRun) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if err := requireDoer(view, c.Space, meta); err != nil {
		return nil, err
	}
	stream := run.Stream(c.Run, c.Space, c.Conversation)
	state := event.StateOf[run.State](view, stream)
	if state.Status.Claimed() {
		return asked(stream, state.RequestCancel(meta.Actor)), nil
	}
	// Nobody holds it: there is nobody to ask, and the system may end it at once.
	terminal, err := state.End(run.Ending{Outcome: run.StatusCancelled, Epoch: state.Epoch}, event.System)
	if err != nil {
		return nil, err
	}
	conversation, err := requireOpened(view, c.Conversation, c.Space)
	if err != nil {
		return nil, err
	}
	turn, ok := conversation.turnOf(c.Run)
	if !ok {
		return nil, fault.New(fault.NotFound, "turn_not_found", "run %s has no turn in this conversation: check its id", c.Run)
	}
	ended := TurnEnded{Turn: turn.Turn, Run: c.Run, Outcome: run.StatusCancelled}
	return EndTurn{Conversation: c.Conversation, Space: c.Space}.changes(stream, terminal, startNext(conversation, ended)), nil
}

// asked is the change that asks the worker; none when it was asked before.
func asked(stream event.Ref, events []event.Event) []event.Change {
	if len(events) == 0 {
		return nil
	}
	return []event.Change{{Stream: stream, Events: events}}
}
