package agent

import "cairn/domain/event"

// Evolve folds one event.
func Evolve(s State, e event.Event) State {
	if r, ok := e.(Revised); ok {
		return State{
			Revision: r.Revision, Name: r.Name, Model: r.Model, Instructions: r.Instructions,
			Tools: r.Tools, Limits: r.Limits,
		}
	}
	return s
}
