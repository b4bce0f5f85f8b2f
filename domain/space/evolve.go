package space

import (
	"maps"

	"cairn/domain/event"
)

// Evolve folds one event.
func Evolve(s State, e event.Event) State {
	if created, ok := e.(Created); ok && !s.Created {
		return State{
			Created: true, Personal: created.Personal, Name: created.Name, Slug: created.Slug, Claim: created.Claim,
			Members: map[event.ID]Role{created.Owner: Owner},
		}
	}
	if !s.Created {
		return s
	}
	switch e := e.(type) {
	case MemberAdded:
		return s.with(e.Account, e.Role)
	case MemberRoleChanged:
		return s.with(e.Account, e.Role)
	case MemberRemoved:
		s.Members = maps.Clone(s.Members)
		delete(s.Members, e.Account)
	case EgressBounded:
		s.Egress = e.Egress
	case Erased:
		s.Erased = true
		s.Name, s.Slug = event.Sealed{}, event.Sealed{}
	}
	return s
}

func (s State) with(account event.ID, role Role) State {
	s.Members = maps.Clone(s.Members)
	s.Members[account] = role
	return s
}
