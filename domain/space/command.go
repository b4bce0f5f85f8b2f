package space

import (
	"cairn/domain/account"
	"cairn/domain/claim"
	"cairn/domain/egress"
	"cairn/domain/event"
)

// Create makes a space. The system may, and the account that becomes its owner.
type Create struct {
	Space       event.ID `json:"space"`
	Personal    bool     `json:"personal"`
	DisplayName string   `json:"name"`
	Slug        string   `json:"slug"`     // 1 to 63 lower-case letters, digits and inner hyphens
	SlugMAC     []byte   `json:"slug_mac"` // HMAC-SHA-256 of the claim's kind and the slug, 32 bytes
	Owner       event.ID `json:"owner"`
}

// Name implements event.Command.
func (Create) Name() string { return "space.create" }

// Streams implements event.Command.
func (c Create) Streams() []event.Ref {
	return []event.Ref{Stream(c.Space), claim.Stream(c.SlugMAC), account.Stream(c.Owner)}
}

// Answer implements event.Command.
func (c Create) Answer() any { return Answer{Space: c.Space} }

// AddMember gives an account a role in the space. Owners give every role, admins member and auditor.
type AddMember struct {
	Space   event.ID `json:"space"`
	Account event.ID `json:"account"`
	Role    Role     `json:"role"`
}

// Name implements event.Command.
func (AddMember) Name() string { return "space.add_member" }

// Streams implements event.Command.
func (c AddMember) Streams() []event.Ref {
	return []event.Ref{Stream(c.Space), account.Stream(c.Account)}
}

// Answer implements event.Command.
func (c AddMember) Answer() any { return Answer{Space: c.Space} }

// ChangeRole gives a member another role. Owners change every role, admins between member and auditor.
type ChangeRole struct {
	Space   event.ID `json:"space"`
	Account event.ID `json:"account"`
	Role    Role     `json:"role"`
}

// Name implements event.Command.
func (ChangeRole) Name() string { return "space.change_role" }

// Streams implements event.Command.
func (c ChangeRole) Streams() []event.Ref { return []event.Ref{Stream(c.Space)} }

// Answer implements event.Command.
func (c ChangeRole) Answer() any { return Answer{Space: c.Space} }

// RemoveMember ends a membership. Everyone may leave; owners remove everyone, admins members and auditors.
type RemoveMember struct {
	Space   event.ID `json:"space"`
	Account event.ID `json:"account"`
}

// Name implements event.Command.
func (RemoveMember) Name() string { return "space.remove_member" }

// Streams implements event.Command.
func (c RemoveMember) Streams() []event.Ref { return []event.Ref{Stream(c.Space)} }

// Answer implements event.Command.
func (c RemoveMember) Answer() any { return Answer{Space: c.Space} }

// BoundEgress says what agents of the space reach at most, and by default. Owners and admins may.
type BoundEgress struct {
	Space  event.ID       `json:"space"`
	Egress *egress.Policy `json:"egress"` // null: no bound, and nothing by default
}

// Name implements event.Command.
func (BoundEgress) Name() string { return "space.bound_egress" }

// Streams implements event.Command.
func (c BoundEgress) Streams() []event.Ref { return []event.Ref{Stream(c.Space)} }

// Answer implements event.Command.
func (c BoundEgress) Answer() any { return Answer{Space: c.Space} }

// Erase ends a space, frees its slug and orders its key destroyed. Owners may.
type Erase struct {
	Space event.ID `json:"space"`
	Claim event.ID `json:"claim"` // as space.created recorded it
}

// Name implements event.Command.
func (Erase) Name() string { return "space.erase" }

// Streams implements event.Command.
func (c Erase) Streams() []event.Ref { return []event.Ref{Stream(c.Space), claim.Ref(c.Claim)} }

// Answer implements event.Command.
func (c Erase) Answer() any { return Answer{Space: c.Space} }

// Answer names the space that a command was about.
type Answer struct {
	Space event.ID `json:"space_id"`
}
