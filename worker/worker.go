// Package worker runs agents: it takes jobs from the queue, claims their runs by event, keeps their leases,
// and carries each one to its end with the agent loop of worker/harness.
//
//	job --run.Start accepted--> claimed --lease--> working --> ended     (EndTurn)
//	 |                                        |--drain-------> released  (Release: another worker goes on)
//	 +--refused: somebody else's              +--lease lost--> left      (its sandbox is killed, nothing appended)
//
// The queue only says where to look; the run's stream decides who holds it (its epoch fences), the lease only
// triggers the sweep that takes a claim back. Every worker sweeps.
//
// It may import the standard library, domain, db, sandbox, River, and its own folders; never server.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"cairn/db"
	"cairn/domain/event"
	"cairn/worker/harness"
)

// Worker is one process's worker. Run may be called once.
type Worker struct {
	o        Options
	harness  harness.Options
	keeper   *keeper
	queue    *river.Client[pgx.Tx]
	draining atomic.Bool
	log      *slog.Logger
}

// New checks the options; nothing is touched before Run.
func New(o Options) (*Worker, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	w := &Worker{o: o, log: o.Log.With("worker", o.Name)}
	w.harness = o.harness(w.log)
	w.keeper = newKeeper(o.DB, o.LeaseTTL, w.log)
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &runWorker{worker: w}); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	w.queue, err = river.NewClient(riverpgxv5.New(o.DB.Pool()), &river.Config{
		Queues: o.queues(), Workers: workers, FetchCooldown: db.FetchCooldown, JobTimeout: -1, Logger: slog.New(warnings{o.Log.Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("worker: queue: %w", err)
	}
	return w, nil
}

// warnings passes what deserves attention: the queue tells its counts every few seconds otherwise.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

// Name is what the worker is called in the log.
func (w *Worker) Name() string { return w.o.Name }

// Run works until ctx ends, then drains: no new jobs, and every run is brought to a safe point and handed
// back. It returns when nothing of this worker is left, or at once when it cannot start.
func (w *Worker) Run(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	if err := w.queue.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("worker: start the queue: %w", err)
	}
	w.log.Info("worker started", "host", w.o.Host, "queues", w.o.Queues, "slots", w.o.Slots)
	all.Go(func() { w.keeper.renew(background) })
	all.Go(func() { w.keeper.guard(background) })
	all.Go(func() { w.watch(background) })
	all.Go(func() { w.sweep(background) })
	<-ctx.Done()
	return w.drain()
}

// stopPatience is how long a drain waits for runs after they were interrupted.
const stopPatience = 30 * time.Second

func (w *Worker) drain() error {
	w.draining.Store(true)
	w.keeper.each((*harness.Orders).Drain)
	interrupt := time.AfterFunc(w.o.DrainGrace, func() { w.keeper.each((*harness.Orders).Interrupt) })
	defer interrupt.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), w.o.DrainGrace+stopPatience)
	defer cancel()
	err := w.queue.Stop(ctx)
	w.keeper.close(ctx)
	if err != nil {
		return fmt.Errorf("worker: runs did not stop in %s: %w", w.o.DrainGrace+stopPatience, err)
	}
	w.log.Info("worker drained")
	return nil
}

func (w *Worker) meta() event.Meta {
	return event.Meta{Actor: event.WorkerActor(w.o.Name), At: time.Now()}
}
