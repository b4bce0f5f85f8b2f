// Package conversation is a thread between people and one agent: one turn at a time, and a queue of the
// messages that wait for theirs. It decides what must hold together over a turn and its run.
//
//	conversation:  (none) --opened--> idle --turn_started--> busy --turn_ended--> idle
//
//	one turn:      (none) --message_posted--> waiting --turn_started--> active --turn_ended--> ended
//	                                             +-------------turn_ended (cancelled)-----------^
//
// Every message is one turn and one run, which is queued in the same append. The end of a run, the end of
// its turn and the start of the next turn are one append over both streams: so a turn is never active
// beside another, and no message is forgotten.
//
// It may import the standard library and, of domain, event, fault, check, space, agent and run.
package conversation

import (
	"cairn/domain/event"
	"cairn/domain/run"
)

// Kind is the stream kind.
const Kind = "conversation"

// DefaultQueue is where runs wait when the conversation names no queue.
const DefaultQueue = run.DefaultQueue

// LocalQueue begins the names of queues that one process serves, for itself alone, as long as it lives.
const LocalQueue = "local-"

// Turn is one message and the run that answers it.
type Turn struct {
	Turn    event.ID `json:"turn"`
	Run     event.ID `json:"run"`
	Message event.ID `json:"message"`
	Number  int64    `json:"number"` // 1 for the first turn that started; 0 while it waits
}

// State is the folded conversation.
type State struct {
	Opened  bool         `json:"opened"`
	Agent   event.ID     `json:"agent"`
	Title   event.Sealed `json:"title"`
	Source  run.Source   `json:"source"`
	Mounts  []run.Mount  `json:"mounts"`
	Queue   string       `json:"queue"`
	Active  Turn         `json:"active"`  // zero while idle
	Waiting []Turn       `json:"waiting"` // in the order of their messages
	Started int64        `json:"started"` // number of turns that have started
}

// Idle reports whether no turn is active.
func (s State) Idle() bool { return s.Active == Turn{} }

// TurnStarted reports whether the run's turn is the active one; a run is claimed only then.
func (s State) TurnStarted(run event.ID) bool { return !s.Idle() && s.Active.Run == run }

// turnOf finds the turn of a run, active or waiting.
func (s State) turnOf(run event.ID) (Turn, bool) {
	if s.TurnStarted(run) {
		return s.Active, true
	}
	for _, turn := range s.Waiting {
		if turn.Run == run {
			return turn, true
		}
	}
	return Turn{}, false
}

// Stream names a conversation, which is its own topic.
func Stream(id, space event.ID) event.Ref {
	return event.Ref{Kind: Kind, ID: id, Space: space, Topic: id}
}

// Aggregate describes the noun to the registry.
func Aggregate() event.Aggregate {
	return event.Aggregate{
		Kind:   Kind,
		Shared: true,
		Events: []event.Definition{
			event.Define[Opened](), event.Define[MessagePosted](), event.Define[TurnStarted](), event.Define[TurnEnded](),
		},
		Initial: func() any { return State{} },
		Evolve:  func(state any, e event.Event) any { s, _ := state.(State); return Evolve(s, e) },
	}
}
