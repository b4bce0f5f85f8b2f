// Package agent is who works: a model with instructions, tools and limits. Its revisions are only ever
// appended; a run pins the one it was queued with.
//
//	(none) --revised 1--> revision 1 --revised 2--> revision 2 --> ...
//
// It may import the standard library, domain/event, domain/fault, domain/check, domain/egress and domain/space.
package agent

import (
	"slices"

	"cairn/domain/egress"
	"cairn/domain/event"
)

// Kind is the stream kind.
const Kind = "agent"

// The tools that an agent can be granted, in the order in which they are listed everywhere.
const (
	Shell = "shell"
	Read  = "read"
	Write = "write"
	Edit  = "edit"
	Glob  = "glob"
	Grep  = "grep"
)

// Tools returns all tools.
func Tools() []string { return []string{Shell, Read, Write, Edit, Glob, Grep} }

// ReadOnly reports whether a tool changes nothing, so that a call in doubt may simply be made again.
func ReadOnly(tool string) bool { return slices.Contains([]string{Read, Glob, Grep}, tool) }

// State is the newest revision.
type State struct {
	Revision     int64        `json:"revision"` // 0: the agent does not exist
	Name         event.Sealed `json:"name"`
	Model        string       `json:"model"`
	Instructions event.Sealed `json:"instructions"`
	Tools        []string     `json:"tools"`
	Limits       Limits       `json:"limits"`

	Egress *egress.Policy `json:"egress,omitzero"`
}

// Stream names an agent.
func Stream(id, space event.ID) event.Ref {
	return event.Ref{Kind: Kind, ID: id, Space: space, Topic: id}
}

// Aggregate describes the noun to the registry.
func Aggregate() event.Aggregate {
	return event.Aggregate{
		Kind:    Kind,
		Events:  []event.Definition{event.Define[Revised]()},
		Initial: func() any { return State{} },
		Evolve:  func(state any, e event.Event) any { s, _ := state.(State); return Evolve(s, e) },
	}
}
