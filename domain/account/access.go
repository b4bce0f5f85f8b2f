package account

// What the account's stream says of signing in and of refusals.

import (
	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// How a session is opened.
const (
	MethodCode     = "code"
	MethodPassword = "password"
)

// Why a session is ended.
const (
	ReasonLogout   = "logout"
	ReasonRevoked  = "revoked"
	ReasonReplaced = "replaced"
)

const (
	maxRoute = 200
	maxRule  = 100
)

// ofSelf answers the account's state when the actor is the account itself or the system; to others it does not exist.
func ofSelf(view event.View, id event.ID, actor string) (State, error) {
	state := event.StateOf[State](view, Stream(id))
	self, _ := event.ActorAccount(actor)
	if !state.Active() || actor != event.System && self != id {
		return state, fault.New(fault.NotFound, "account_not_found", "account %s does not exist for you: check the id", id)
	}
	return state, nil
}

func ofOperator(view event.View, id event.ID, actor string) (State, error) {
	state, err := ofSelf(view, id, actor)
	if err == nil && actor != event.System {
		err = fault.New(fault.Denied, "account_operator_only", "only the operator of the installation may do this: ask them")
	}
	return state, err
}

func change(id event.ID, e event.Event) []event.Change {
	return []event.Change{{Stream: Stream(id), Events: []event.Event{e}}}
}

// Decide implements event.Command.
func (c Disable) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state, err := ofOperator(view, c.Account, meta.Actor)
	if err != nil || state.Disabled {
		return nil, err
	}
	return change(c.Account, Disabled{}), nil
}

// Decide implements event.Command.
func (c Enable) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state, err := ofOperator(view, c.Account, meta.Actor)
	if err != nil || !state.Disabled {
		return nil, err
	}
	return change(c.Account, Enabled{}), nil
}

// Decide implements event.Command.
func (c OpenSession) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state, err := ofSelf(view, c.Account, meta.Actor)
	if err == nil {
		err = check.First(check.ID("session", c.Session), check.OneOf("method", c.Method, MethodCode, MethodPassword))
	}
	if err == nil && !state.MaySignIn() {
		err = fault.New(fault.Denied, "account_disabled", "account %s is disabled: ask the operator to enable it", c.Account)
	}
	if err != nil {
		return nil, err
	}
	return change(c.Account, SessionOpened{Session: c.Session, Method: c.Method}), nil
}

// Decide implements event.Command.
func (c RevokeSession) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if _, err := ofSelf(view, c.Account, meta.Actor); err != nil {
		return nil, err
	}
	err := check.First(check.ID("session", c.Session), check.OneOf("reason", c.Reason, ReasonLogout, ReasonRevoked, ReasonReplaced))
	if err != nil {
		return nil, err
	}
	return change(c.Account, SessionRevoked{Session: c.Session, Reason: c.Reason}), nil
}

// Decide implements event.Command.
func (c ChangePassword) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state, err := ofSelf(view, c.Account, meta.Actor)
	if err == nil && !state.MaySignIn() {
		err = fault.New(fault.Denied, "account_disabled", "account %s is disabled: ask the operator to enable it", c.Account)
	}
	if err == nil {
		err = check.ID("session", c.Session)
	}
	if err != nil {
		return nil, err
	}
	return change(c.Account, PasswordChanged{Session: c.Session}), nil
}

// Decide implements event.Command.
func (c RecordDenial) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if _, err := ofSelf(view, c.Account, meta.Actor); err != nil {
		return nil, err
	}
	if err := check.First(check.Line("route", c.Route, 1, maxRoute), check.Line("rule", c.Rule, 1, maxRule)); err != nil {
		return nil, err
	}
	return change(c.Account, ActionDenied{Route: c.Route, Rule: c.Rule, Target: c.Target}), nil
}

// Decide implements event.Command.
func (c CountDenials) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if _, err := ofOperator(view, c.Account, meta.Actor); err != nil {
		return nil, err
	}
	if c.Denials < 1 || c.Since.IsZero() {
		return nil, fault.Field("denials", "%d since %s: count at least one, and say since when", c.Denials, c.Since)
	}
	return change(c.Account, DenialsCounted{Denials: c.Denials, Since: c.Since.UTC()}), nil
}
