package task

import "cairn/domain/event"

// Evolve folds one event.
func Evolve(s State, e event.Event) State {
	switch e := e.(type) {
	case Opened:
		if s.Opened {
			return s
		}
		return State{
			Opened: true, Agent: e.Agent, Title: e.Title, Prompt: e.Prompt, Model: e.Model, Source: e.Source, Mounts: e.Mounts, Queue: e.Queue,
		}
	case AttemptStarted:
		s.Active, s.Last, s.Attempts = e.Run, e.Run, e.Attempt
	case AttemptEnded:
		if s.Active == e.Run {
			s.Active = event.ID{}
		}
	}
	return s
}
