package account

import "cairn/domain/event"

// Evolve folds one event.
func Evolve(s State, e event.Event) State {
	switch e := e.(type) {
	case Opened:
		if s.Opened {
			return s
		}
		return State{Opened: true, AccountKind: e.AccountKind, Email: e.Email, Name: e.Name, Claim: e.Claim}
	case Disabled:
		s.Disabled = s.Opened
	case Enabled:
		s.Disabled = false
	case Erased:
		s.Erased = s.Opened
		s.Email, s.Name = event.Sealed{}, event.Sealed{}
	}
	return s
}
