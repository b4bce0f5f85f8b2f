package account

import (
	"time"

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

// Disable keeps an account from signing in, and ends its sessions. Only the operator may.
type Disable struct {
	Account event.ID `json:"account"`
}

// Name implements event.Command.
func (Disable) Name() string { return "account.disable" }

// Streams implements event.Command.
func (c Disable) Streams() []event.Ref { return []event.Ref{Stream(c.Account)} }

// Answer implements event.Command.
func (c Disable) Answer() any { return Answer(c) }

// Enable lets a disabled account sign in again. Only the operator may.
type Enable struct {
	Account event.ID `json:"account"`
}

// Name implements event.Command.
func (Enable) Name() string { return "account.enable" }

// Streams implements event.Command.
func (c Enable) Streams() []event.Ref { return []event.Ref{Stream(c.Account)} }

// Answer implements event.Command.
func (c Enable) Answer() any { return Answer(c) }

// OpenSession records that the account signed in. The caller has checked its credential.
type OpenSession struct {
	Account event.ID `json:"account"`
	Session event.ID `json:"session"`
	Method  string   `json:"method"` // MethodCode or MethodPassword
}

// Name implements event.Command.
func (OpenSession) Name() string { return "account.open_session" }

// Streams implements event.Command.
func (c OpenSession) Streams() []event.Ref { return []event.Ref{Stream(c.Account)} }

// Answer implements event.Command.
func (c OpenSession) Answer() any { return Answer{Account: c.Account} }

// RevokeSession ends one session. The account itself may, and the system.
type RevokeSession struct {
	Account event.ID `json:"account"`
	Session event.ID `json:"session"`
	Reason  string   `json:"reason"` // ReasonLogout, ReasonRevoked or ReasonReplaced
}

// Name implements event.Command.
func (RevokeSession) Name() string { return "account.revoke_session" }

// Streams implements event.Command.
func (c RevokeSession) Streams() []event.Ref { return []event.Ref{Stream(c.Account)} }

// Answer implements event.Command.
func (c RevokeSession) Answer() any { return Answer{Account: c.Account} }

// ChangePassword records a new password and ends all sessions but the one that set it. The account itself may.
type ChangePassword struct {
	Account event.ID `json:"account"`
	Session event.ID `json:"session"` // that goes on
}

// Name implements event.Command.
func (ChangePassword) Name() string { return "account.change_password" }

// Streams implements event.Command.
func (c ChangePassword) Streams() []event.Ref { return []event.Ref{Stream(c.Account)} }

// Answer implements event.Command.
func (c ChangePassword) Answer() any { return Answer{Account: c.Account} }

// RecordDenial records one refusal. The actor is the account, or the system when nobody is known to be it.
type RecordDenial struct {
	Account event.ID  `json:"account"`
	Route   string    `json:"route"`
	Rule    string    `json:"rule"`
	Target  *event.ID `json:"target"`
}

// Name implements event.Command.
func (RecordDenial) Name() string { return "account.record_denial" }

// Streams implements event.Command.
func (c RecordDenial) Streams() []event.Ref { return []event.Ref{Stream(c.Account)} }

// Answer implements event.Command.
func (c RecordDenial) Answer() any { return Answer{Account: c.Account} }

// CountDenials records how many refusals were not recorded one by one. Only the system counts.
type CountDenials struct {
	Account event.ID  `json:"account"`
	Denials int64     `json:"denials"`
	Since   time.Time `json:"since"`
}

// Name implements event.Command.
func (CountDenials) Name() string { return "account.count_denials" }

// Streams implements event.Command.
func (c CountDenials) Streams() []event.Ref { return []event.Ref{Stream(c.Account)} }

// Answer implements event.Command.
func (c CountDenials) Answer() any { return Answer{Account: c.Account} }

// Answer names the account that a command was about.
type Answer struct {
	Account event.ID `json:"account_id"`
}
