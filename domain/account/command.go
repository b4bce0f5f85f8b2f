package account

import (
	"cairn/domain/claim"
	"cairn/domain/event"
)

// Open makes an account. Only the system opens accounts.
type Open struct {
	Account     event.ID `json:"account"`
	AccountKind string   `json:"account_kind"` // Person or Service
	Email       string   `json:"email"`        // normalised by the edge
	DisplayName string   `json:"name"`
	EmailMAC    []byte   `json:"email_mac"` // HMAC-SHA-256 of the claim's kind and the address, 32 bytes
}

// Name implements event.Command.
func (Open) Name() string { return "account.open" }

// Streams implements event.Command.
func (c Open) Streams() []event.Ref {
	return []event.Ref{Stream(c.Account), claim.Stream(c.EmailMAC)}
}

// Answer implements event.Command.
func (c Open) Answer() any { return Answer{Account: c.Account} }

// Erase ends an account, frees its e-mail address and orders its key destroyed. The system may, and the
// account itself.
type Erase struct {
	Account event.ID `json:"account"`
	Claim   event.ID `json:"claim"` // as account.opened recorded it
}

// Name implements event.Command.
func (Erase) Name() string { return "account.erase" }

// Streams implements event.Command.
func (c Erase) Streams() []event.Ref { return []event.Ref{Stream(c.Account), claim.Ref(c.Claim)} }

// Answer implements event.Command.
func (c Erase) Answer() any { return Answer{Account: c.Account} }

// Answer names the account that a command was about.
type Answer struct {
	Account event.ID `json:"account_id"`
}
