package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"cairn/db/audit"
	"cairn/domain/fault"
)

// Exit codes, as docs/reference/cli.md lists them. Scripts rely on them.
const (
	exitDone        = 0
	exitFailure     = 1
	exitUsage       = 2
	exitRefused     = 3
	exitRunFailed   = 4
	exitConflict    = 5
	exitCancelled   = 6
	exitUnverified  = 7
	exitUnavailable = 8
)

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: code, err: err}
}

// usage is an error about what was typed.
func usage(err error) error { return withCode(exitUsage, err) }

// unavailable is an error about the database, the sandbox or the machine.
func unavailable(err error) error { return withCode(exitUnavailable, err) }

// interrupted tells an end that the caller asked for, by Ctrl-C, from a fault: what a stopped start reports is no
// fault of the database.
func interrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return withCode(exitCancelled, err)
	}
	return err
}

func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[*audit.Broken](err); ok {
		return exitUnverified
	}
	if _, ok := errors.AsType[*audit.Different](err); ok {
		return exitUnverified
	}
	if _, ok := errors.AsType[*audit.Unfoldable](err); ok {
		return exitUnverified
	}
	switch fault.KindOf(err) {
	case fault.Invalid:
		return exitUsage
	case fault.Denied, fault.Exhausted:
		return exitRefused
	case fault.Conflict:
		return exitConflict
	case fault.Unavailable:
		return exitUnavailable
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return exitUnavailable
	}
	if errors.Is(err, context.Canceled) {
		return exitCancelled
	}
	return exitFailure
}
