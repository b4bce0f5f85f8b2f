package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"cairn/db"
	"cairn/db/embedded"
	"cairn/domain/event"
	"cairn/domain/run"
)

// appends compares, for 1, 8 and 32 writers, appends with positions and a reader to appends alone, and to
// inserts of single rows of the same size into a table with nothing but a primary key.
func (b *bench) appends(ctx context.Context) ([]Result, error) {
	if _, err := b.owner.Exec(ctx, "CREATE TABLE IF NOT EXISTS public.bench_row (id uuid PRIMARY KEY, data text NOT NULL); GRANT ALL ON public.bench_row TO cairn_server"); err != nil {
		return nil, err
	}
	var all []*series
	for _, writers := range []int{1, 8, 32} {
		full := &series{name: fmt.Sprintf("append with positions and reader, %d writers", writers), unit: "1/s", floor: "append alone"}
		insert := &series{name: fmt.Sprintf("the same, %d writers", writers), unit: "1/s", floor: "single-row INSERT"} // by pgbench, else by pgx
		if writers > 1 {
			full.atLeast = 0.65
		}
		if writers == 8 {
			insert.atLeast = 0.3
		}
		for range b.options.Rounds {
			with, err := b.appendRate(ctx, writers, true)
			if err != nil {
				return nil, err
			}
			alone, err := b.appendRate(ctx, writers, false)
			if err != nil {
				return nil, err
			}
			rows, err := b.insertRate(ctx, writers)
			if err != nil {
				return nil, err
			}
			full.add(with, alone)
			insert.add(with, rows)
		}
		all = append(all, full, insert)
	}
	return results(all...), nil
}

// appendRate is appends per second, each to its writer's own run.
func (b *bench) appendRate(ctx context.Context, writers int, positions bool) (float64, error) {
	d, err := b.open(ctx, func(o *db.Options) { o.NoPositions = !positions })
	if err != nil {
		return 0, err
	}
	defer b.drain(ctx)
	defer d.Close()
	jobs, err := b.jobs(ctx, d, writers)
	if err != nil {
		return 0, err
	}
	if positions {
		defer reading(ctx, d, nil)()
	}
	return rate(ctx, writers, b.options.Length, func(ctx context.Context, i int) error {
		_, err := jobs[i].append(ctx, d, jobs[i].next())
		return err
	})
}

// reading tails the log from its head until the function that it answers is called.
func reading(ctx context.Context, d *db.DB, fn func([]event.Record)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	identity, err := d.Identity(ctx)
	if err != nil {
		cancel()
		return func() {}
	}
	wg.Go(func() {
		d.Tail(ctx, db.Cursor{Position: identity.Head}, db.Scope{}, func(records []event.Record) error {
			if fn != nil {
				fn(records)
			}
			return nil
		})
	})
	return func() { cancel(); wg.Wait() }
}

// insertRate is what pgbench does with single-row inserts, or a pool of ours where there is no pgbench.
func (b *bench) insertRate(ctx context.Context, writers int) (float64, error) {
	script := "INSERT INTO public.bench_row (id, data) VALUES (gen_random_uuid(), '" + strings.ReplaceAll(output, "\n", " ") + "')"
	tps, err := b.cluster.PGBench(ctx, "postgres", script, writers, b.options.Length)
	if !errors.Is(err, embedded.ErrNoPGBench) {
		return tps, err
	}
	config, err := pgxpool.ParseConfig(b.url)
	if err != nil {
		return 0, err
	}
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	return rate(ctx, writers, b.options.Length, func(ctx context.Context, _ int) error {
		_, err := pool.Exec(ctx, "INSERT INTO public.bench_row (id, data) VALUES ($1, $2)", newID(), output)
		return err
	})
}

// dispatch compares appends that insert a job to equally large ones that do not, for 8 writers.
func (b *bench) dispatch(ctx context.Context) ([]Result, error) {
	s := &series{name: "append with dispatch, 8 writers", unit: "1/s", floor: "without"}
	for range b.options.Rounds {
		with, err := b.eventRate(ctx, 8, run.Released{Epoch: 1, Worker: workerName, Queue: "idle"})
		if err != nil {
			return nil, err
		}
		without, err := b.eventRate(ctx, 8, run.CancelRequested{Reason: run.ReasonRequested})
		if err != nil {
			return nil, err
		}
		s.add(with, without)
	}
	return results(s), nil
}

func (b *bench) eventRate(ctx context.Context, writers int, e event.Event) (float64, error) {
	d, err := b.open(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	jobs, err := b.jobs(ctx, d, writers)
	if err != nil {
		return 0, err
	}
	return rate(ctx, writers, b.options.Length, func(ctx context.Context, i int) error {
		_, err := jobs[i].append(ctx, d, e)
		return err
	})
}

// nudge is a command whose event changes nothing that grows: a turn that is not the active one ends.
type nudge struct{ on event.Ref }

// tail compares how long a committed event takes to a reader with how long its append took, at 200 events/s.
func (b *bench) tail(ctx context.Context) ([]Result, error) {
	s := &series{name: "commit to reader, p50 at 200 events/s", unit: "ms", floor: "append p50", atMost: 3}
	late := &series{name: "commit to reader, p99 at 200 events/s", unit: "ms"}
	d, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	jobs, err := b.jobs(ctx, d, 4)
	if err != nil {
		return nil, err
	}
	w := &watch{arrived: map[event.ID]time.Time{}}
	defer reading(ctx, d, w.see)()
	for range b.options.Rounds {
		appends, delays, err := w.pace(ctx, d, jobs, 2*b.options.Length)
		if err != nil {
			return nil, err
		}
		s.add(median(delays), median(appends))
		late.add(quantile(delays, 0.99), 0)
	}
	return results(s, late), nil
}
