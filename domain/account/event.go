package account

import "cairn/domain/event"

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
