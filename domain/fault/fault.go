// Package fault names the kinds of refusal that a decision can answer.
//
// Every refusal says which rule refused, the value it saw and how to mend it. The edges map a kind to
// their own language: the REST API to a status and a problem document, the command line to an exit code.
// A fault is an answer, not a breakdown: nothing was written when one is returned.
//
// It may import the standard library only.
package fault

import (
	"errors"
	"fmt"
)

// Kind is the class of a refusal. The zero Kind is not a fault.
type Kind string

// The kinds. Their text is stable: it is part of the REST problem code.
const (
	Invalid     Kind = "invalid"     // the input breaks a rule; Field says where
	NotFound    Kind = "not_found"   // it does not exist, or the actor may not know that it does
	Conflict    Kind = "conflict"    // the state moved on, or the same key was used for something else
	Denied      Kind = "denied"      // the actor may know of it but may not do this
	Exhausted   Kind = "exhausted"   // a limit, quota or budget is used up
	Unavailable Kind = "unavailable" // a part that is needed does not answer; the same call may work later
)

// Fault is one refusal.
type Fault struct {
	Kind    Kind
	Code    string // stable and specific, like "run_not_active"
	Field   string // path of the offending input field, empty when the refusal is not about one
	Message string // for people: rule, value, fix
}

// Error returns the message, with the field in front where there is one.
func (f *Fault) Error() string {
	if f.Field != "" {
		return f.Field + ": " + f.Message
	}
	return f.Message
}

// New makes a fault of a kind with a stable code and a formatted message.
func New(kind Kind, code, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Field makes an Invalid fault about one input field.
func Field(field, format string, args ...any) *Fault {
	return &Fault{Kind: Invalid, Code: "invalid_field", Field: field, Message: fmt.Sprintf(format, args...)}
}

// KindOf returns the kind of the first fault in err's chain, or the empty Kind when there is none.
func KindOf(err error) Kind {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.Kind
	}
	return ""
}

// Is reports whether err carries a fault of the kind.
func Is(err error, kind Kind) bool { return KindOf(err) == kind }

// HasCode reports whether err carries a fault with the code.
func HasCode(err error, code string) bool {
	f, ok := errors.AsType[*Fault](err)
	return ok && f.Code == code
}
