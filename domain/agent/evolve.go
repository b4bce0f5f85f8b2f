package agent

import "cairn/domain/event"

// Evolve folds one event.
func Evolve(s State, e event.Event) State {
	if r, ok := e.(Revised); ok {
		return State(r)
	}
	return s
}
