package account

import (
	"strings"

	"cairn/domain/check"
	"cairn/domain/claim"
	"cairn/domain/event"
	"cairn/domain/fault"
)

const (
	maxEmail = 254 // RFC 5321, section 4.5.3.1.3, without the angle brackets
	maxName  = 200
)

// Decide implements event.Command.
func (c Open) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if meta.Actor != event.System {
		return nil, fault.New(fault.Denied, "account_open_denied", "only the system opens accounts: ask the operator for one")
	}
	err := check.First(
		check.ID("account", c.Account),
		check.OneOf("account_kind", c.AccountKind, Person, Service),
		checkEmail("email", c.Email),
		check.Line("name", c.DisplayName, 1, maxName),
		claim.CheckMAC("email_mac", c.EmailMAC))
	if err != nil {
		return nil, err
	}
	if event.StateOf[State](view, Stream(c.Account)).Opened {
		return nil, fault.New(fault.Conflict, "account_exists", "account %s exists: use a new id", c.Account)
	}
	ref := claim.Stream(c.EmailMAC)
	claims, err := claim.Take(ref, event.StateOf[claim.State](view, ref), "email", owner(c.Account))
	if err != nil {
		return nil, err
	}
	opened := Opened{AccountKind: c.AccountKind, Email: event.Seal(c.Email), Name: event.Seal(c.DisplayName), Claim: ref.ID}
	return append([]event.Change{{Stream: Stream(c.Account), Events: []event.Event{opened}}}, claims...), nil
}

// checkEmail is modest on purpose: only a delivered message proves an address.
func checkEmail(field, email string) error {
	if err := check.Line(field, email, 3, maxEmail); err != nil {
		return err
	}
	local, domain, _ := strings.Cut(email, "@")
	if local == "" || domain == "" || strings.ContainsAny(domain, "@") || strings.ContainsAny(email, " ") {
		return fault.Field(field, "not an address: want one @ with something on both sides and no blanks")
	}
	return nil
}

// Decide implements event.Command.
func (c Erase) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, Stream(c.Account))
	self, _ := event.ActorAccount(meta.Actor)
	if !state.Opened || meta.Actor != event.System && self != c.Account {
		return nil, fault.New(fault.NotFound, "account_not_found", "account %s does not exist for you: check the id", c.Account)
	}
	if state.Erased {
		return nil, nil
	}
	if c.Claim != state.Claim {
		return nil, fault.Field("claim", "%s is not the claim of account %s: give the one that it was opened with", c.Claim, c.Account)
	}
	ref := claim.Ref(c.Claim)
	freed := claim.Release(ref, event.StateOf[claim.State](view, ref), owner(c.Account))
	return append([]event.Change{{Stream: Stream(c.Account), Events: []event.Event{Erased{}}}}, freed...), nil
}
