package bench

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"cairn/db"
)

// enough is how many events the log must have for the replay to be measured.
const enough = 30_000

// replay compares reading the log as a replay does with COPY of the same rows in the same order.
func (b *bench) replay(ctx context.Context) ([]Result, error) {
	d, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := b.fill(ctx, d); err != nil {
		return nil, err
	}
	s := &series{name: "replay stream", unit: "events/s", floor: "COPY of the same rows", atLeast: 0.3}
	for range b.options.Rounds {
		began := time.Now()
		n, err := readAll(ctx, d)
		if err != nil {
			return nil, err
		}
		value := float64(n) / time.Since(began).Seconds()
		began = time.Now()
		tag, err := b.owner.PgConn().CopyTo(ctx, io.Discard, `COPY (SELECT p.position, e.* FROM log.log_position p JOIN log.event e ON e.id = p.event_id ORDER BY p.position) TO STDOUT`)
		if err != nil {
			return nil, err
		}
		if tag.RowsAffected() != int64(n) {
			return nil, fmt.Errorf("replay read %d events, COPY %d", n, tag.RowsAffected())
		}
		s.add(value, float64(n)/time.Since(began).Seconds())
	}
	return results(s), nil
}

func readAll(ctx context.Context, d *db.DB) (n int, err error) {
	for after := int64(0); ; {
		records, err := d.Since(ctx, after, db.Scope{}, 1000)
		if err != nil || len(records) == 0 {
			return n, err
		}
		n += len(records)
		after = records[len(records)-1].Position
	}
}

func (b *bench) fill(ctx context.Context, d *db.DB) error {
	identity, err := d.Identity(ctx)
	if err != nil || identity.Head >= enough {
		return err
	}
	jobs, err := b.jobs(ctx, d, 16)
	if err != nil {
		return err
	}
	if _, err := rate(ctx, 16, time.Duration(enough-identity.Head)*time.Second/1500, func(ctx context.Context, i int) error {
		_, err := jobs[i].append(ctx, d, jobs[i].next())
		return err
	}); err != nil {
		return err
	}
	return b.drain(ctx)
}

// snapshot compares how long a sequencing call takes, at 8 writers, in the last fifth of a time in which
// an old snapshot keeps all dead rows, with the time before.
func (b *bench) snapshot(ctx context.Context) ([]Result, error) {
	m := &calls{}
	d, err := b.open(ctx, func(o *db.Options) { o.Sequenced = m.add })
	if err != nil {
		return nil, err
	}
	defer d.Close()
	jobs, err := b.jobs(ctx, d, 8)
	if err != nil {
		return nil, err
	}
	load := func(length time.Duration) ([]float64, error) {
		m.reset()
		_, err := rate(ctx, 8, length, func(ctx context.Context, i int) error {
			_, err := jobs[i].append(ctx, d, jobs[i].next())
			return err
		})
		return m.times(), err
	}
	before, err := load(b.options.Snapshot / 5)
	if err != nil {
		return nil, err
	}
	tx, err := b.owner.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM log.unsequenced"); err != nil {
		return nil, err
	}
	if _, err := load(b.options.Snapshot * 4 / 5); err != nil {
		return nil, err
	}
	after, err := load(b.options.Snapshot / 5)
	if err != nil {
		return nil, err
	}
	s := &series{name: fmt.Sprintf("sequencing call after a snapshot was held %v", b.options.Snapshot), unit: "ms", floor: "before", atMost: 4}
	for i := range b.options.Rounds { // rounds here are slices of both times
		s.add(median(slice(after, i, b.options.Rounds)), median(slice(before, i, b.options.Rounds)))
	}
	return results(s), nil
}

func slice(values []float64, i, of int) []float64 {
	return values[i*len(values)/of : (i+1)*len(values)/of]
}

// calls gathers how long sequencing calls took, in milliseconds.
type calls struct {
	mu  sync.Mutex
	all []float64
}

func (c *calls) add(_ int, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, milliseconds(took))
}

func (c *calls) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = nil
}

func (c *calls) times() []float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]float64(nil), c.all...)
}
