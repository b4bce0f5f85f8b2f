package worker

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"cairn/db"
	"cairn/domain/fault"
	"cairn/domain/run"
	"cairn/worker/harness"
)

// runWorker takes the jobs of the queue.
type runWorker struct {
	river.WorkerDefaults[db.RunJob]
	worker *Worker
}

// blockedPause is how long a job rests whose run cannot even be read, as when a blob is missing. It must not
// end: the sweep would make another one at once.
const blockedPause = 30 * time.Second

// Work claims the run and carries it on. Its context ends only when the process gives up; what ends a run
// early are its orders and its lease.
func (r *runWorker) Work(ctx context.Context, job *river.Job[db.RunJob]) error {
	w := r.worker
	if w.draining.Load() {
		return river.JobSnooze(0)
	}
	target := run.Target{Run: job.Args.Run, Space: job.Args.Space, Conversation: job.Args.Conversation, Task: job.Args.Task}
	claim, err := w.claim(ctx, target)
	switch {
	case fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound):
		w.log.Debug("nothing to claim", "run", target.Run, "reason", err)
		return nil
	case fault.Is(err, fault.Unavailable):
		w.log.Error("run cannot be claimed now", "run", target.Run, "error", err, "again_in", blockedPause)
		return river.JobSnooze(blockedPause)
	case err != nil:
		w.log.Error("run cannot be claimed", "run", target.Run, "error", err)
		return river.JobSnooze(time.Second)
	}
	if err := w.carry(ctx, claim); err != nil {
		w.log.Error("run left to another worker", "run", claim.Run, "epoch", claim.Epoch, "error", err)
	}
	return nil
}

// claim answers the epoch under which the run is ours now.
func (w *Worker) claim(ctx context.Context, target run.Target) (harness.Claim, error) {
	result, err := w.o.DB.Execute(ctx, run.Start{Target: target, Worker: w.o.Name, Host: w.o.Host}, w.meta())
	if err != nil {
		return harness.Claim{}, err
	}
	for i := range result.Records {
		e, err := w.o.DB.Decode(ctx, &result.Records[i])
		if err != nil {
			return harness.Claim{}, err
		}
		if started, ok := e.(run.Started); ok {
			return harness.Claim{Target: target, Epoch: started.Epoch}, nil
		}
	}
	return harness.Claim{}, fault.New(fault.Conflict, "run_claimed", "the claim appended nothing")
}

// carry runs the loop under a lease.
func (w *Worker) carry(ctx context.Context, claim harness.Claim) error {
	lease := db.Lease{Run: claim.Run, Space: claim.Space, Topic: claim.Topic(), Epoch: claim.Epoch, Worker: w.o.Name}
	holding, err := w.keeper.take(ctx, lease)
	if err != nil {
		return err
	}
	defer w.keeper.drop(holding)
	if w.draining.Load() { // began while the run was claimed
		holding.orders.Drain()
	}
	return harness.Run(holding.held, w.harness, claim, holding.orders)
}
