package agent

import (
	"cairn/domain/egress"
	"cairn/domain/event"
)

// Revised says that the agent is as follows from this revision on.
type Revised struct {
	Revision     int64        `json:"revision"` // 1, 2, ...
	Name         event.Sealed `json:"name"`
	Model        string       `json:"model"`
	Instructions event.Sealed `json:"instructions"`
	Tools        []string     `json:"tools"`
	Limits       Limits       `json:"limits"`

	Egress *egress.Policy `json:"egress,omitzero"` // what its runs may reach; absent: what the space says, else nothing
}

// Kind implements event.Event.
func (Revised) Kind() string { return "agent.revised" }
