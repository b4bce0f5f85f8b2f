package space

import (
	"slices"

	"cairn/domain/event"
	"cairn/domain/fault"
)

// Require answers nil when the actor holds one of the roles, or is the system. A stranger gets NotFound,
// since the space's existence is none of its business; a member with too little gets Denied, and so does
// a worker.
func Require(s State, actor string, roles ...Role) error {
	if _, ok := event.ActorWorker(actor); ok {
		return fault.New(fault.Denied, "worker_denied", "%.80s is a worker: it acts on the runs it claimed, nothing else", actor)
	}
	id, isAccount := event.ActorAccount(actor)
	role := s.Role(id)
	if !s.Created || actor != event.System && (!isAccount || role == "") {
		return fault.New(fault.NotFound, "space_not_found", "the space does not exist for you: check its id, or ask an owner to add you")
	}
	if s.Erased {
		return fault.New(fault.NotFound, "space_erased", "the space was erased: its content is gone for good")
	}
	if actor != event.System && !slices.Contains(roles, role) {
		return fault.New(fault.Denied, "role_too_low", "your role here is %s, this needs one of %v: ask an owner", role, roles)
	}
	return nil
}

// requireOver asks for the right to touch a membership with the given roles, old and new.
func requireOver(s State, actor string, touched ...Role) error {
	for _, role := range touched {
		if role == Owner || role == Admin {
			return Require(s, actor, Owner)
		}
	}
	return Require(s, actor, Owner, Admin)
}
