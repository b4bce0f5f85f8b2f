package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cairn/domain/event"
	"cairn/domain/fault"
)

// What a flush can be answered, beside success and breakdown. Callers inside the room act on them.
var (
	errConflict  = errors.New("a stream moved on")
	errDuplicate = errors.New("an idempotency key was used before")
)

// unknownOutcome bounds how long an append whose connection broke is clarified before it is given up.
const unknownOutcome = 10 * time.Second

// Expected is a change together with the version that its stream must have.
type Expected struct {
	event.Change
	Version int64 // 0: the stream must not exist
}

// Append writes changes to one or more streams in one flush, or nothing at all. Every stream must be at the
// version given; else the answer is a Conflict. Most callers want Execute, which decides and retries.
func (d *DB) Append(ctx context.Context, meta event.Meta, changes ...Expected) ([]event.Record, error) {
	f := newFlush()
	for _, c := range changes {
		if err := d.add(ctx, f, c.Stream, c.Version, c.Events, meta); err != nil {
			return nil, err
		}
		f.heads = append(f.heads, head{stream: c.Stream, expected: c.Version, n: int64(len(c.Events))})
		if aggregate, _ := d.registry.Aggregate(c.Stream.Kind); aggregate.Shared && c.Version > 0 {
			f.locks = append(f.locks, lockKey(c.Stream.ID)) // or it would overtake those who queue for the stream
		}
	}
	if err := d.send(ctx, f); err != nil {
		if errors.Is(err, errConflict) {
			return nil, fault.New(fault.Conflict, "stream_moved", "another writer was first on one of %v: load it again and decide anew", f.refs())
		}
		return nil, err
	}
	return f.records, nil
}

func newFlush() *flush {
	return &flush{asserted: map[event.ID]int64{}, sealedBy: map[event.ID]bool{}}
}

// send commits the flush. When the connection breaks the outcome is unknown: the same flush is tried again,
// which is safe because the heads let it in once only, and its event ids tell whether it already is.
func (d *DB) send(ctx context.Context, f *flush) error {
	began := time.Now()
	err := d.sendClarified(ctx, f)
	d.stats.sent(len(f.records), time.Since(began), err)
	return err
}

func (d *DB) sendClarified(ctx context.Context, f *flush) error {
	err := d.sendOnce(ctx, f)
	if err == nil || !broken(err) {
		return err
	}
	deadline := time.Now().Add(unknownOutcome)
	for pause := 10 * time.Millisecond; time.Now().Before(deadline); pause = min(2*pause, time.Second) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("append: outcome unknown: %w", errors.Join(ctx.Err(), err))
		case <-time.After(pause):
		}
		if retry := d.settle(ctx, f, d.sendOnce(ctx, f)); retry == nil || !broken(retry) {
			return retry
		}
	}
	return fault.New(fault.Unavailable, "database_unavailable", "append: the database did not come back within %v (%v): it is not known whether this was appended; see the server's own log, it may be stopped or its disk full", unknownOutcome, err)
}

// settle tells a refusal of the repetition, whatever it says (the key may have been destroyed in between), from
// the success of the first attempt. When it cannot ask, it answers why, so that the flush is tried and
// clarified once more.
func (d *DB) settle(ctx context.Context, f *flush, err error) error {
	if err == nil || broken(err) {
		return err
	}
	exists, lookup := d.log.EventExists(ctx, f.records[0].ID)
	if lookup != nil {
		return fmt.Errorf("append: outcome unknown: %w", lookup)
	}
	if exists {
		return nil
	}
	return err
}

func (d *DB) sendOnce(ctx context.Context, f *flush) error {
	batch, err := d.batch(ctx, f)
	if err != nil {
		return err
	}
	if !f.underLock {
		select {
		case d.appending <- struct{}{}:
			defer func() { <-d.appending }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if len(f.jobs) == 0 {
		err = d.pool.SendBatch(ctx, batch).Close()
	} else {
		err = d.sendWithJobs(ctx, f, batch)
	}
	if err != nil {
		return classify(err)
	}
	d.sequencer.ring()
	return nil
}

// sendWithJobs inserts the queue's jobs first and then sends the flush with its COMMIT in one message, so
// that no stream head is locked while the client could be frozen.
func (d *DB) sendWithJobs(ctx context.Context, f *flush, batch *pgx.Batch) error {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // a connection that is still in a transaction is closed, not reused
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if err := d.insertJobs(ctx, tx, f.jobs); err != nil {
		return errors.Join(err, tx.Rollback(ctx))
	}
	batch.Queue("commit")
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		if !conn.Conn().IsClosed() {
			_, rerr := conn.Exec(ctx, "rollback")
			return errors.Join(err, rerr)
		}
		return err
	}
	return nil
}

// classify names the refusals of the append's own functions and constraints.
func classify(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	switch {
	case pg.Code == "CN001":
		return fmt.Errorf("%w: %s", errConflict, pg.Message)
	case pg.Code == "CN002":
		return fault.New(fault.Conflict, "subject_erased", "%s: nothing can be written for it any more", pg.Message)
	case pg.Code == "23505" && pg.ConstraintName == "command_pkey":
		return errDuplicate
	case pg.Code == "23505" && pg.ConstraintName == "event_stream_id_version_key":
		return fmt.Errorf("%w: %s", errConflict, pg.Detail)
	case strings.HasPrefix(pg.Code, "22"):
		return fault.New(fault.Invalid, "not_storable", "PostgreSQL cannot store a value of this event (%s): nothing was appended", pg.Message)
	case pg.Code == "53300":
		return fault.New(fault.Unavailable, "database_busy", "the database takes no more connections (%s): raise max_connections or run fewer processes; nothing was appended", pg.Message)
	case pg.Code == "53100" || pg.Code == "53400":
		return fault.New(fault.Unavailable, "database_full", "the database cannot write: %s: free some space; nothing was appended", pg.Message)
	case pg.Code == "40001" || pg.Code == "40P01": // serialization failure, deadlock
		return fmt.Errorf("%w: %s", errConflict, pg.Message)
	}
	return err
}

// unreachable turns a broken connection of a reading into a refusal that callers know; nothing was written.
func unreachable(err error) error {
	if !broken(err) {
		return err
	}
	return fault.New(fault.Unavailable, "database_unavailable", "the database does not answer: %v", err)
}

// broken reports whether the connection failed, so that the outcome of a commit is unknown.
func broken(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "57P01", "57P02", "57P03", "25P03": // shutdown, crash, starting up, idle in transaction
			return true
		}
		return strings.HasPrefix(pg.Code, "08")
	}
	if fault.KindOf(err) != "" || errors.Is(err, errConflict) || errors.Is(err, errDuplicate) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return connecting || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "conn closed")
}
