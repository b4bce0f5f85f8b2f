package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"cairn/db"
	"cairn/domain/event"
	"cairn/domain/run"
)

const liveQueue = "live"

// starts tells when each job was begun.
type starts struct {
	river.WorkerDefaults[db.RunJob]
	at chan started
}

type started struct {
	run event.ID
	at  time.Time
}

// Work implements river.Worker.
func (s *starts) Work(_ context.Context, job *river.Job[db.RunJob]) error {
	s.at <- started{job.Args.Run, time.Now()}
	return nil
}

// queue measures how long after the commit of an append its job begins, with one append at a time.
func (b *bench) queue(ctx context.Context) ([]Result, error) {
	d, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	s := &starts{at: make(chan started, 1000)}
	client, err := working(d, s)
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	defer client.Stop(context.Background())
	half := &series{name: "append's commit to job start, p50", unit: "ms"}
	late := &series{name: "append's commit to job start, p99", unit: "ms"}
	for range b.options.Rounds {
		delays, err := b.starts(ctx, d, s)
		if err != nil {
			return nil, err
		}
		half.add(median(delays), 0)
		late.add(quantile(delays, 0.99), 0)
	}
	return results(half, late), nil
}

func working(d *db.DB, s *starts) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, s); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	client, err := river.NewClient(riverpgxv5.New(d.Pool()), &river.Config{
		FetchCooldown: db.FetchCooldown, Queues: map[string]river.QueueConfig{liveQueue: {MaxWorkers: 20}}, Workers: workers,
	})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return client, nil
}

func (b *bench) starts(ctx context.Context, d *db.DB, s *starts) ([]float64, error) {
	jobs, err := b.jobs(ctx, d, 1)
	if err != nil {
		return nil, err
	}
	var delays []float64
	for end := time.Now().Add(b.options.Length); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if _, err := jobs[0].append(ctx, d, run.Released{Epoch: 1, Worker: workerName, Queue: liveQueue}); err != nil {
			return nil, err
		}
		committed := time.Now()
		select {
		case begun := <-s.at:
			delays = append(delays, milliseconds(max(0, begun.at.Sub(committed))))
		case <-time.After(10 * time.Second):
			return nil, fmt.Errorf("a job did not begin within 10 s")
		}
	}
	return delays, nil
}
