package claim

import "cairn/domain/event"

// Evolve folds one event.
func Evolve(s State, e event.Event) State {
	switch e := e.(type) {
	case Taken:
		s.Owner = Owner{Kind: e.OwnerKind, ID: e.Owner}
	case Released:
		s.Owner = Owner{}
	}
	return s
}
