// Package torture hits a log from many processes while some of them are killed and frozen, and checks what
// must hold afterwards whatever happened:
//
//	every acknowledged event is in the log, once
//	every committed event has a position; positions are dense and begin at 1
//	in every stream, versions ascend with positions and have no gap
//	every decision was made on the state that its event follows
//	a reader that was there all the time saw exactly that, in order
//
// The package holds the noun that is struck, the writers and the checks. Its tests start the processes:
// five seconds of it in `make test`, sixty with a seed in `make torture` (CAIRN_TORTURE_SECONDS,
// CAIRN_TORTURE_SEED).
//
// It may import db, domain/event, pgx and the standard library. Only tests import it.
package torture

import (
	"context"

	"cairn/db"
	"cairn/db/internal/projectq"
	"cairn/domain/event"
)

// The two kinds of stream: private ones belong to one writer, anvils are struck by all.
const (
	KindPrivate = "private"
	KindAnvil   = "anvil"
)

// Blow is one event. Count is the state's count when it was decided, plus one, so that it equals the version
// exactly when the decision saw everything before it.
type Blow struct {
	Process string `json:"process"`
	Writer  int    `json:"writer"`
	N       int64  `json:"n"` // unique for its process and writer
	Count   int64  `json:"count"`
}

// Struck is a blow on an anvil.
type Struck struct{ Blow }

// Kind implements event.Event.
func (Struck) Kind() string { return KindAnvil + ".struck" }

// Noted is a blow on a private stream.
type Noted struct{ Blow }

// Kind implements event.Event.
func (Noted) Kind() string { return KindPrivate + ".noted" }

// State counts the blows of a stream.
type State struct{ Count int64 }

// Registry knows both kinds of stream.
func Registry() *event.Registry {
	count := func(state any, _ event.Event) any { s, _ := state.(State); return State{Count: s.Count + 1} }
	initial := func() any { return State{} }
	return event.NewRegistry(
		event.Aggregate{Kind: KindAnvil, Shared: true, Events: []event.Definition{event.Define[Struck]()}, Initial: initial, Evolve: count},
		event.Aggregate{Kind: KindPrivate, Events: []event.Definition{event.Define[Noted]()}, Initial: initial, Evolve: count},
	)
}

// Use makes the options of a database know the package's nouns, which have no projection.
func Use(o *db.Options) {
	o.Registry = Registry()
	o.Project = func(context.Context, *projectq.Queries, *event.Record, event.Event) error { return nil }
}

// Anvil names the i-th stream that all processes strike.
func Anvil(i int) event.Ref {
	id := event.NameID(event.ID{15: 1}, []byte{byte(i)})
	return event.Ref{Kind: KindAnvil, ID: id, Topic: id}
}

// Private names a stream of one writer.
func Private(id event.ID) event.Ref { return event.Ref{Kind: KindPrivate, ID: id, Topic: id} }

// Strike puts a blow on an anvil and, with Also, one on a private stream in the same append.
type Strike struct {
	On   event.Ref
	Also event.Ref // zero: none
	Blow Blow
}

// Name implements event.Command.
func (Strike) Name() string { return "anvil.strike" }

// Streams implements event.Command.
func (c Strike) Streams() []event.Ref {
	if c.Also.ID.IsZero() {
		return []event.Ref{c.On}
	}
	return []event.Ref{c.On, c.Also}
}

// Answer implements event.Command.
func (c Strike) Answer() any { return c.Blow }

// Decide implements event.Command.
func (c Strike) Decide(view event.View, _ event.Meta) ([]event.Change, error) {
	blow := func(on event.Ref) Blow {
		b := c.Blow
		b.Count = event.StateOf[State](view, on).Count + 1
		return b
	}
	changes := []event.Change{{Stream: c.On, Events: []event.Event{Struck{blow(c.On)}}}}
	if !c.Also.ID.IsZero() {
		changes = append(changes, event.Change{Stream: c.Also, Events: []event.Event{Noted{blow(c.Also)}}})
	}
	return changes, nil
}
