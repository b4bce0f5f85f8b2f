package space

import (
	"cairn/domain/egress"
	"cairn/domain/event"
)

// Created says that a space exists and that its owner is a member with the role owner.
type Created struct {
	Personal bool         `json:"personal"`
	Name     event.Sealed `json:"name"`
	Slug     event.Sealed `json:"slug"`
	Claim    event.ID     `json:"claim"` // the claim on the slug
	Owner    event.ID     `json:"owner"`
}

// Kind implements event.Event.
func (Created) Kind() string { return "space.created" }

// MemberAdded says that an account became a member.
type MemberAdded struct {
	Account event.ID `json:"account"`
	Role    Role     `json:"role"`
}

// Kind implements event.Event.
func (MemberAdded) Kind() string { return "space.member_added" }

// MemberRoleChanged says that a member has another role from now on.
type MemberRoleChanged struct {
	Account event.ID `json:"account"`
	Role    Role     `json:"role"`
}

// Kind implements event.Event.
func (MemberRoleChanged) Kind() string { return "space.member_role_changed" }

// MemberRemoved says that an account is no member any more.
type MemberRemoved struct {
	Account event.ID `json:"account"`
}

// Kind implements event.Event.
func (MemberRemoved) Kind() string { return "space.member_removed" }

// EgressBounded says what agents of the space reach at most from now on, and by default.
type EgressBounded struct {
	Egress *egress.Policy `json:"egress"` // null: no bound, and nothing by default
}

// Kind implements event.Event.
func (EgressBounded) Kind() string { return "space.egress_bounded" }

// Erased says that the space's key is to be destroyed: all its content reads as erased from now on.
type Erased struct{}

// Kind implements event.Event.
func (Erased) Kind() string { return "space.erased" }

// ErasesSubject implements event.Eraser.
func (Erased) ErasesSubject() {}
