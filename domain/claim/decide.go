package claim

import (
	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// macSize is the length of HMAC-SHA-256.
const macSize = 32

// CheckMAC refuses a keyed hash that is not one: a short one would collide.
func CheckMAC(field string, mac []byte) error {
	if len(mac) != macSize {
		return fault.Field(field, "want the %d bytes of an HMAC-SHA-256, got %d", macSize, len(mac))
	}
	return nil
}

// Take answers the change that gives the claim to the owner; taking it twice changes nothing.
func Take(stream event.Ref, state State, kind string, owner Owner) ([]event.Change, error) {
	if err := check.OneOf("claim_kind", kind, "email", "slug"); err != nil {
		return nil, err
	}
	if state.Owner == owner {
		return nil, nil
	}
	if state.Owner != (Owner{}) {
		return nil, fault.New(fault.Conflict, "claim_taken", "this %s is taken: choose another", kind)
	}
	taken := Taken{ClaimKind: kind, OwnerKind: owner.Kind, Owner: owner.ID}
	return []event.Change{{Stream: stream, Events: []event.Event{taken}}}, nil
}

// Release answers the change that frees the claim; one that the owner does not hold stays as it is.
func Release(stream event.Ref, state State, owner Owner) []event.Change {
	if state.Owner != owner {
		return nil
	}
	return []event.Change{{Stream: stream, Events: []event.Event{Released{}}}}
}
