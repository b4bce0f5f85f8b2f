package agent

import (
	"cairn/domain/egress"
	"cairn/domain/event"
	"cairn/domain/space"
)

// Revise makes an agent, or its next revision. Everyone who works in the space may.
type Revise struct {
	Agent            event.ID    `json:"agent"`
	Space            event.ID    `json:"space"`
	DisplayName      string      `json:"name"`
	Model            string      `json:"model"`
	Instructions     string      `json:"instructions"`
	Tools            []string    `json:"tools"` // of Tools()
	Limits           AskedLimits `json:"limits"`
	ExpectedRevision *int64      `json:"expected_revision"` // null: whatever it is now; 0: must be new

	Egress *egress.Policy `json:"egress"` // null: what the space says
}

// Name implements event.Command.
func (Revise) Name() string { return "agent.revise" }

// Streams implements event.Command.
func (c Revise) Streams() []event.Ref {
	return []event.Ref{Stream(c.Agent, c.Space), space.Stream(c.Space)}
}

// Answer implements event.Command.
func (c Revise) Answer() any { return Answer{Agent: c.Agent} }

// Answer names the agent that a command was about.
type Answer struct {
	Agent event.ID `json:"agent_id"`
}
