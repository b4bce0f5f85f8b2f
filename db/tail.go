package db

import (
	"context"
	"time"

	"cairn/domain/event"
	"cairn/domain/fault"
)

// tailBatch is how many records a tail reads at once.
const tailBatch = 1000

// Cursor is a place in one life of one log. A zero LogID means "this log, whatever its life": for readers
// that begin now.
type Cursor struct {
	LogID       event.ID `json:"log_id"`
	Incarnation int64    `json:"incarnation"`
	Position    int64    `json:"position"`
}

// Check answers whether a cursor still belongs to this log. A cursor of another log, of an earlier life, or
// beyond the head answers a Conflict with code start_over: the reader forgets what it has and begins at 0.
func (id Identity) Check(c Cursor) error {
	switch {
	case !c.LogID.IsZero() && c.LogID != id.LogID:
		return fault.New(fault.Conflict, "start_over", "the cursor is of log %s, this is log %s: start over from position 0", c.LogID, id.LogID)
	case !c.LogID.IsZero() && c.Incarnation != id.Incarnation:
		return fault.New(fault.Conflict, "start_over", "the cursor is of incarnation %d, the log was restored and is in incarnation %d: start over from position 0", c.Incarnation, id.Incarnation)
	case c.Position > id.Head:
		return fault.New(fault.Conflict, "start_over", "the cursor is at position %d, the log ends at %d: start over from position 0", c.Position, id.Head)
	case c.Position < 0:
		return fault.Field("after", "%d is not a position: use 0 or more", c.Position)
	}
	return nil
}

// Tail calls fn with everything after the cursor, in order and without gap or repeat, until ctx ends or fn
// fails. It returns fn's error, or nil when ctx ended.
func (d *DB) Tail(ctx context.Context, from Cursor, scope Scope, fn func([]event.Record) error) error {
	identity, err := d.Identity(ctx)
	if err != nil {
		return err
	}
	if err := identity.Check(from); err != nil {
		return err
	}
	wake, stop := d.bell.subscribe()
	defer stop()
	r := &tail{db: d, cursor: Cursor{identity.LogID, identity.Incarnation, from.Position}, connects: d.bell.connects.Load()}
	for {
		records, err := r.next(ctx, scope)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !broken(err):
			return err
		case err == nil && len(records) > 0:
			if err := fn(records); err != nil {
				return err
			}
			r.cursor.Position = records[len(records)-1].Position
		}
		if err == nil && len(records) == tailBatch {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-time.After(bellPoll):
		}
	}
}

// tail is one reader's place in the log.
type tail struct {
	db       *DB
	cursor   Cursor
	connects int64 // of the bell, when the cursor was last compared with the log's identity
}

// next reads on. After the bell had to connect anew it first makes sure that this is still the same log in
// the same life: in a restored one the positions mean something else.
func (t *tail) next(ctx context.Context, scope Scope) ([]event.Record, error) {
	if now := t.db.bell.connects.Load(); now != t.connects {
		identity, err := t.db.Identity(ctx)
		if err == nil {
			err = identity.Check(t.cursor)
		}
		if err != nil {
			return nil, err
		}
		t.connects = now
	}
	return t.db.Since(ctx, t.cursor.Position, scope, tailBatch)
}
