package conversation

import (
	"slices"

	"cairn/domain/event"
)

// Evolve folds one event.
func Evolve(s State, e event.Event) State {
	if opened, ok := e.(Opened); ok && !s.Opened {
		return State{
			Opened: true, Agent: opened.Agent, Title: opened.Title, Source: opened.Source, Mounts: opened.Mounts, Queue: opened.Queue,
		}
	}
	switch e := e.(type) {
	case MessagePosted:
		s.Waiting = append(slices.Clip(s.Waiting), Turn{Turn: e.Turn, Run: e.Run, Message: e.Message})
	case TurnStarted:
		s.Waiting = without(s.Waiting, e.Turn)
		s.Active = Turn{Turn: e.Turn, Run: e.Run, Message: e.Message, Number: e.Number}
		s.Started = e.Number
	case TurnEnded:
		s.Waiting = without(s.Waiting, e.Turn)
		if s.Active.Turn == e.Turn {
			s.Active = Turn{}
		}
	}
	return s
}

// without returns the turns but one, in a copy: the old state may still be read.
func without(turns []Turn, gone event.ID) []Turn {
	is := func(t Turn) bool { return t.Turn == gone }
	if !slices.ContainsFunc(turns, is) {
		return turns
	}
	return slices.DeleteFunc(slices.Clone(turns), is)
}
