// Package space is a tenant: a team's, or the personal one of an account. It owns agents, conversations
// and their content, which is sealed under its key, and it says who may do what.
//
//	(none) --created--> open --erased--> erased
//
//	per account: stranger --created (as owner) | member_added--> member --member_removed--> stranger
//	                                                               |  ^
//	                                                               +--+ member_role_changed
//
// A space that is open always has at least one owner.
// It may import the standard library, domain/event, domain/fault, domain/check, domain/claim, domain/egress
// and domain/account.
package space

import (
	"cairn/domain/claim"
	"cairn/domain/egress"
	"cairn/domain/event"
)

// Kind is the stream kind.
const Kind = "space"

// Role is what an account is in a space.
type Role string

// The roles, from most to least. An auditor reads everything and changes nothing.
const (
	Owner   Role = "owner"
	Admin   Role = "admin"
	Member  Role = "member"
	Auditor Role = "auditor"
)

// Doers are the roles that work in a space: all but the auditor.
var Doers = []Role{Owner, Admin, Member}

// State is the folded space.
type State struct {
	Created  bool              `json:"created"`
	Erased   bool              `json:"erased"`
	Personal bool              `json:"personal"`
	Name     event.Sealed      `json:"name"`
	Slug     event.Sealed      `json:"slug"`
	Claim    event.ID          `json:"claim"`
	Members  map[event.ID]Role `json:"members"`

	Egress *egress.Policy `json:"egress"` // bounds what its agents reach, and is theirs when they have none; null: no bound
}

// Role returns the role of an account; it is empty for a stranger.
func (s State) Role(account event.ID) Role { return s.Members[account] }

func (s State) owners() int {
	n := 0
	for _, role := range s.Members {
		if role == Owner {
			n++
		}
	}
	return n
}

// Stream names a space. It owns itself and is its own topic.
func Stream(id event.ID) event.Ref { return event.Ref{Kind: Kind, ID: id, Space: id, Topic: id} }

func holder(id event.ID) claim.Owner { return claim.Owner{Kind: Kind, ID: id} }

// Aggregate describes the noun to the registry.
func Aggregate() event.Aggregate {
	return event.Aggregate{
		Kind: Kind,
		Events: []event.Definition{
			event.Define[Created](), event.Define[MemberAdded](), event.Define[MemberRoleChanged](),
			event.Define[MemberRemoved](), event.Define[EgressBounded](), event.Define[Erased](),
		},
		Initial: func() any { return State{} },
		Evolve:  func(state any, e event.Event) any { s, _ := state.(State); return Evolve(s, e) },
	}
}
