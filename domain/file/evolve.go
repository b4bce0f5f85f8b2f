package file

import "cairn/domain/event"

// Evolve folds one event.
func Evolve(s State, e event.Event) State {
	switch e := e.(type) {
	case Stored:
		return State{Stored: true, Path: e.Path, Digest: e.Digest, Content: e.Content, MediaType: e.MediaType, Executable: e.Executable}
	case Removed:
		return State{}
	}
	return s
}
