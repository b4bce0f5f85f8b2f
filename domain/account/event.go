package account

import (
	"time"

	"cairn/domain/event"
)

// Opened says that an account exists.
type Opened struct {
	AccountKind string       `json:"account_kind"` // "person" or "service"
	Email       event.Sealed `json:"email" seal:"account"`
	Name        event.Sealed `json:"name" seal:"account"`
	Claim       event.ID     `json:"claim"` // the claim on the e-mail address
}

// Kind implements event.Event.
func (Opened) Kind() string { return "account.opened" }

// Erased says that the account's key is to be destroyed: its sealed fields read as erased from now on.
type Erased struct{}

// Kind implements event.Event.
func (Erased) Kind() string { return "account.erased" }

// ErasesSubject implements event.Eraser.
func (Erased) ErasesSubject() {}

// Disabled says that the account may not sign in until it is enabled. Its sessions and codes end in the transaction
// that appends it.
type Disabled struct{}

// Kind implements event.Event.
func (Disabled) Kind() string { return "account.disabled" }

// Enabled says that the account may sign in again.
type Enabled struct{}

// Kind implements event.Event.
func (Enabled) Kind() string { return "account.enabled" }

// SessionOpened says that somebody signed in as the account.
type SessionOpened struct {
	Session event.ID `json:"session"` // the session
	Method  string   `json:"method"`  // how: "code" or "password"
}

// Kind implements event.Event.
func (SessionOpened) Kind() string { return "account.session_opened" }

// SessionRevoked says that a session counts for nothing any more. One that was not used for its time ends without it.
type SessionRevoked struct {
	Session event.ID `json:"session"` // the session
	Reason  string   `json:"reason"`  // "logout", "revoked" by another session, or "replaced" by a new one of the same browser
}

// Kind implements event.Event.
func (SessionRevoked) Kind() string { return "account.session_revoked" }

// PasswordChanged says that the account has a new password. All sessions but one, and all codes, have ended.
type PasswordChanged struct {
	Session event.ID `json:"session"` // the session that goes on
}

// Kind implements event.Event.
func (PasswordChanged) Kind() string { return "account.password_changed" }

// ActionDenied says that something was refused that the account, or somebody who tried to be it, asked for. It never
// holds what was sent.
type ActionDenied struct {
	Route  string    `json:"route"`  // pattern of the interface, like "POST /api/v1/spaces/{space}/agents"; "live" for a topic
	Rule   string    `json:"rule"`   // code of the refusal
	Target *event.ID `json:"target"` // what it was about
}

// Kind implements event.Event.
func (ActionDenied) Kind() string { return "account.action_denied" }

// DenialsCounted stands for refusals beyond those that are recorded one by one, so that a flood cannot fill the log.
type DenialsCounted struct {
	Denials int64     `json:"denials"` // how many, of one server process
	Since   time.Time `json:"since"`   // when the first of them was
}

// Kind implements event.Event.
func (DenialsCounted) Kind() string { return "account.denials_counted" }
