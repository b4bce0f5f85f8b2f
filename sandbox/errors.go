package sandbox

import (
	"errors"
	"fmt"

	"cairn/sandbox/hand"
)

// ErrHandLost means that the process inside is gone or broke the protocol:
// the instance is of no use any more, a running call is in doubt.
var ErrHandLost = hand.ErrLost

// ErrBusy means that a run folder, or a sandbox id, is in use by a live
// worker.
var ErrBusy = errors.New("in use by another sandbox")

// ErrNoSlot means that every uid range is taken.
var ErrNoSlot = errors.New("no free uid range")

// ToolError is a result of a tool that a model can read and act on, such as
// not_found or not_unique; its codes are listed in package hand/wire. It is
// not a failure of the sandbox.
type ToolError = hand.Fault

// RefusedError means that a required control could not be installed or was
// not observed. Nothing of the agent has run.
type RefusedError struct {
	Control Control
	Reason  string
	Fix     string
	Report  *Report // what was found so far
	cause   error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("sandbox refused: control %s: %s; fix: %s", e.Control, e.Reason, e.Fix)
}

func (e *RefusedError) Unwrap() error { return e.cause }

func refuse(c Control, reason string, cause error) *RefusedError {
	return &RefusedError{Control: c, Reason: reason, Fix: fixes[c], cause: cause}
}

func refuseBy(c Control, cause error) *RefusedError { return refuse(c, cause.Error(), cause) }
