// Package account is a person or a service that acts: who one is, not what one may do (that is a
// membership in a space).
//
//	(none) --opened--> open --disabled--> disabled --enabled--> open
//	                    \--------erased-----/--> erased
//
// A disabled account cannot sign in, and its sessions have ended; what it owns and where it is a member stays. The
// secrets of signing in are never here: the account's stream says that a session was opened, and no more of it.
//
// E-mail and name are sealed under the account's own key; destroying it erases them everywhere.
// It may import the standard library, domain/event, domain/fault, domain/check and domain/claim.
package account

import (
	"cairn/domain/claim"
	"cairn/domain/event"
)

// Kind is the stream kind.
const Kind = "account"

// The kinds of accounts.
const (
	Person  = "person"
	Service = "service"
)

// State is the folded account.
type State struct {
	Opened      bool         `json:"opened"`
	Erased      bool         `json:"erased"`
	Disabled    bool         `json:"disabled"`
	AccountKind string       `json:"account_kind"`
	Email       event.Sealed `json:"email"`
	Name        event.Sealed `json:"name"`
	Claim       event.ID     `json:"claim"`
}

// Active reports whether the account exists and was not erased.
func (s State) Active() bool { return s.Opened && !s.Erased }

// MaySignIn reports whether sessions of the account can be.
func (s State) MaySignIn() bool { return s.Active() && !s.Disabled }

// Stream names an account. Accounts belong to no space.
func Stream(id event.ID) event.Ref { return event.Ref{Kind: Kind, ID: id, Topic: id} }

func owner(id event.ID) claim.Owner { return claim.Owner{Kind: Kind, ID: id} }

// Aggregate describes the noun to the registry.
func Aggregate() event.Aggregate {
	return event.Aggregate{
		Kind: Kind,
		Events: []event.Definition{
			event.Define[Opened](), event.Define[Erased](), event.Define[Disabled](), event.Define[Enabled](),
			event.Define[SessionOpened](), event.Define[SessionRevoked](), event.Define[PasswordChanged](),
			event.Define[ActionDenied](), event.Define[DenialsCounted](),
		},
		Initial: func() any { return State{} },
		Evolve:  func(state any, e event.Event) any { s, _ := state.(State); return Evolve(s, e) },
	}
}
