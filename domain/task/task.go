// Package task is a piece of work that is given to an agent once, and that runs as attempts until somebody is
// content with one. It decides what must hold together over an attempt and its run.
//
//	task:         (none) --opened, attempt_started--> busy --attempt_ended--> idle
//	                                                   ^---attempt_started-----+
//
//	one attempt:  (none) --attempt_started--> active --attempt_ended--> ended
//
// Every attempt is one run, which is queued in the same append; while one is active there is no other. The end
// of a run and the end of its attempt are one append over both streams, so that neither is ever without the
// other. An attempt starts from one of three places:
//
//	the first, and a retry of the task:  the source, afresh, with the task's prompt
//	a continuation:                      the files and the transcript of the newest run, with a prompt of its own
//	a retry of one run:                  where that run started from, with its prompt
//
// It may import the standard library and, of domain, event, fault, check, space, agent and run.
package task

import (
	"cairn/domain/event"
	"cairn/domain/run"
)

// Kind is the stream kind.
const Kind = "task"

// State is the folded task.
type State struct {
	Opened   bool         `json:"opened"`
	Agent    event.ID     `json:"agent"`
	Title    event.Sealed `json:"title"`
	Prompt   event.Sealed `json:"prompt"`
	Model    string       `json:"model"`
	Source   run.Source   `json:"source"`
	Mounts   []run.Mount  `json:"mounts"`
	Queue    string       `json:"queue"`
	Active   event.ID     `json:"active"`   // run of the active attempt; zero while idle
	Last     event.ID     `json:"last"`     // run of the newest attempt
	Attempts int64        `json:"attempts"` // that have started
}

// Idle reports whether no attempt is active.
func (s State) Idle() bool { return s.Active.IsZero() }

// TurnStarted reports whether the run is the active attempt; a run is claimed only then. The name is that
// which a conversation has for it.
func (s State) TurnStarted(run event.ID) bool { return !s.Idle() && s.Active == run }

// Stream names a task, which is its own topic.
func Stream(id, space event.ID) event.Ref {
	return event.Ref{Kind: Kind, ID: id, Space: space, Topic: id}
}

// Aggregate describes the noun to the registry.
func Aggregate() event.Aggregate {
	return event.Aggregate{
		Kind:    Kind,
		Shared:  true,
		Events:  []event.Definition{event.Define[Opened](), event.Define[AttemptStarted](), event.Define[AttemptEnded]()},
		Initial: func() any { return State{} },
		Evolve:  func(state any, e event.Event) any { s, _ := state.(State); return Evolve(s, e) },
	}
}
