package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"cairn/db"
	"cairn/domain/event"
)

// EventRef names one event of the log.
type EventRef struct {
	ID       event.ID `json:"id"`
	Stream   string   `json:"stream"` // "run/ID"
	Version  int64    `json:"version"`
	Kind     string   `json:"kind"`
	Position *int64   `json:"position"` // null: it waits for one
}

func (e *EventRef) String() string {
	at := "no position yet"
	if e.Position != nil {
		at = fmt.Sprintf("position %d", *e.Position)
	}
	return fmt.Sprintf("%s, version %d of %s (%s)", e.Kind, e.Version, e.Stream, at)
}

func refOf(r *event.Record) *EventRef {
	ref := &EventRef{ID: r.ID, Stream: r.Stream().String(), Version: r.Version, Kind: r.Kind}
	if r.Position > 0 {
		position := r.Position
		ref.Position = &position
	}
	return ref
}

// Unfoldable is an event that Apply or the tables refuse when the log is folded again, although it once was
// appended. The rows cannot be rebuilt before that is mended.
type Unfoldable struct {
	Event EventRef
	Err   error
}

func (u *Unfoldable) Error() string {
	return fmt.Sprintf("event %s cannot be folded again: %v", &u.Event, u.Err)
}

func (u *Unfoldable) Unwrap() error { return u.Err }

// sender is where the rows go: a connection or a transaction on it.
type sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// folder writes events into the tables that its connection's search path means.
type folder struct {
	opener   *db.Opener
	project  db.Projector
	to       sender
	progress func(ReplayProgress)

	began    time.Time
	head     int64
	position int64
	events   int64
}

// prepared is a batch of writes together with the events that they come from.
type prepared struct {
	batch   *pgx.Batch
	records []event.Record
	ends    []int // ends[i] is the number of statements queued up to and with records[i]
}

// run folds everything that the source gives. Reading and opening the next batch goes on while the one
// before is written.
func (f *folder) run(ctx context.Context, from source) error {
	group, ctx := errgroup.WithContext(ctx)
	ready := make(chan *prepared, 1)
	group.Go(func() error {
		defer close(ready)
		for {
			records, err := from(ctx)
			if err != nil || len(records) == 0 {
				return err
			}
			p, err := f.prepare(ctx, records)
			if err != nil {
				return err
			}
			select {
			case ready <- p:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	group.Go(func() error {
		for p := range ready {
			if err := f.write(ctx, p); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// requireReached refuses a log whose positions lead nowhere from some place on: for a query that is its end.
func (f *folder) requireReached(position int64) error {
	if f.position < position {
		return noEvent(f.position+1, fmt.Sprintf("none up to the head, %d", position))
	}
	return nil
}

func (f *folder) prepare(ctx context.Context, records []event.Record) (*prepared, error) {
	p := &prepared{batch: &pgx.Batch{}, records: records, ends: make([]int, len(records))}
	q := db.ProjectInto(p.batch)
	for i := range records {
		e, err := f.opener.Decode(ctx, &records[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", refOf(&records[i]), err)
		}
		if err := f.project(ctx, q, &records[i], e); err != nil {
			return nil, &Unfoldable{Event: *refOf(&records[i]), Err: err}
		}
		p.ends[i] = p.batch.Len()
	}
	return p, nil
}

func (f *folder) write(ctx context.Context, p *prepared) error {
	results := f.to.SendBatch(ctx, p.batch)
	done := 0
	for i, end := range p.ends {
		for ; done < end; done++ {
			if _, err := results.Exec(); err != nil {
				results.Close() // repeats the error
				return refusal(refOf(&p.records[i]), err)
			}
		}
	}
	if err := results.Close(); err != nil {
		return fmt.Errorf("fold: %w", err)
	}
	f.events += int64(len(p.records))
	f.position = max(f.position, p.records[len(p.records)-1].Position)
	if f.progress != nil {
		f.progress(ReplayProgress{Position: f.position, Head: f.head, Events: f.events, Rate: float64(f.events) / time.Since(f.began).Seconds()})
	}
	return nil
}

// refusal tells rows that the tables do not take from a database that cannot write now.
func refusal(ref *EventRef, err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code[:2] {
		case "22", "23", "42": // data exception, integrity violation, no such column
			return &Unfoldable{Event: *ref, Err: err}
		}
	}
	return fmt.Errorf("fold %s: %w", ref, err)
}
