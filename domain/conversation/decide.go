package conversation

import (
	"cairn/domain/agent"
	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
	"cairn/domain/space"
)

const (
	maxTitle = 400
	// MaxWaiting is how many messages of one conversation may wait for their turn.
	MaxWaiting = 1000
)

// Decide implements event.Command.
func (c Open) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if err := requireDoer(view, c.Space, meta); err != nil {
		return nil, err
	}
	if c.Queue == "" {
		c.Queue = DefaultQueue
	}
	err := check.First(check.ID("conversation", c.Conversation), check.Line("title", c.Title, 1, maxTitle),
		run.CheckSource("source", c.Source), run.CheckMounts("mounts", c.Mounts), check.Code("queue", c.Queue))
	if err != nil {
		return nil, err
	}
	if _, err := agent.Require(view, c.Agent, c.Space); err != nil {
		return nil, err
	}
	stream := Stream(c.Conversation, c.Space)
	if event.StateOf[State](view, stream).Opened {
		return nil, fault.New(fault.Conflict, "conversation_exists", "conversation %s exists: use a new id", c.Conversation)
	}
	opened := Opened{
		Agent: c.Agent, Title: event.Seal(c.Title), Source: c.Source, Mounts: append([]run.Mount{}, c.Mounts...), Queue: c.Queue,
	}
	return []event.Change{{Stream: stream, Events: []event.Event{opened}}}, nil
}

func requireDoer(view event.View, id event.ID, meta event.Meta) error {
	return space.Require(event.StateOf[space.State](view, space.Stream(id)), meta.Actor, space.Doers...)
}

func requireOpened(view event.View, id, in event.ID) (State, error) {
	state := event.StateOf[State](view, Stream(id, in))
	if !state.Opened {
		return state, fault.New(fault.NotFound, "conversation_not_found", "conversation %s does not exist in this space: check its id", id)
	}
	return state, nil
}

// Decide implements event.Command.
func (c PostMessage) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if err := requireDoer(view, c.Space, meta); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	state, err := requireOpened(view, c.Conversation, c.Space)
	if err != nil {
		return nil, err
	}
	if err := c.requireAgent(state); err != nil {
		return nil, err
	}
	return c.post(view, state, meta, func(*run.Queued) {})
}

// post adds the message with its turn and its run. lineage completes the run.
func (c PostMessage) post(view event.View, state State, meta event.Meta, lineage func(*run.Queued)) ([]event.Change, error) {
	worker, err := agent.Require(view, c.Agent, c.Space)
	if err != nil {
		return nil, err
	}
	queued, err := run.Pin(c.Agent, worker, c.Model, c.Text)
	if err := check.First(err, c.requireRoom(view, state)); err != nil {
		return nil, err
	}
	queued.Conversation, queued.Turn = c.Conversation, c.Turn
	queued.Source, queued.Mounts, queued.Queue = state.Source.Copied(), append([]run.Mount{}, state.Mounts...), state.Queue
	lineage(&queued)
	posted := MessagePosted{Message: c.Message, Turn: c.Turn, Run: c.Run, Author: meta.Actor, Text: event.Seal(c.Text)}
	return []event.Change{
		{Stream: Stream(c.Conversation, c.Space), Events: startNext(state, posted)},
		{Stream: run.Stream(c.Run, c.Space, c.Conversation), Events: []event.Event{queued}},
	}, nil
}

func (c PostMessage) requireAgent(state State) error {
	if c.Agent != state.Agent {
		return fault.Field("agent", "%s is not the agent of the conversation, %s is: read the conversation again", c.Agent, state.Agent)
	}
	return nil
}

func (c PostMessage) check() error {
	err := check.First(check.ID("message", c.Message), check.ID("turn", c.Turn), check.ID("run", c.Run),
		check.Text("text", c.Text, 1, check.MaxContent))
	if err == nil && c.Model != "" {
		err = agent.CheckModel("model", c.Model)
	}
	return err
}

func (c PostMessage) requireRoom(view event.View, state State) error {
	if len(state.Waiting) >= MaxWaiting {
		return fault.New(fault.Exhausted, "messages_exhausted", "%d messages wait for their turn, the limit is %d: wait for some to be answered, or cancel them", len(state.Waiting), MaxWaiting)
	}
	if event.StateOf[run.State](view, run.Stream(c.Run, c.Space, c.Conversation)).Status != "" {
		return fault.New(fault.Conflict, "run_exists", "run %s exists: use new ids for every message", c.Run)
	}
	for _, turn := range append([]Turn{state.Active}, state.Waiting...) {
		if turn.Turn == c.Turn || turn.Message == c.Message {
			return fault.New(fault.Conflict, "message_exists", "message %s or turn %s exists: use new ids for every message", c.Message, c.Turn)
		}
	}
	return nil
}

// startNext answers the events and, when they leave the conversation idle with a message waiting, the
// start of the next turn.
func startNext(state State, events ...event.Event) []event.Event {
	for _, e := range events {
		state = Evolve(state, e)
	}
	if !state.Idle() || len(state.Waiting) == 0 {
		return events
	}
	next := state.Waiting[0]
	return append(events, TurnStarted{Turn: next.Turn, Run: next.Run, Message: next.Message, Number: state.Started + 1, Queue: state.Queue})
}
