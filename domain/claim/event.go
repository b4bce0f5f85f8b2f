package claim

import "cairn/domain/event"

// Taken says that an owner holds the value.
type Taken struct {
	ClaimKind string   `json:"claim_kind"` // "email" or "slug"
	OwnerKind string   `json:"owner_kind"` // "account" or "space"
	Owner     event.ID `json:"owner"`
}

// Kind implements event.Event.
func (Taken) Kind() string { return "claim.taken" }

// Released says that the value is free again.
type Released struct{}

// Kind implements event.Event.
func (Released) Kind() string { return "claim.released" }
