package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"cairn/db"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
	"cairn/worker/harness"
)

// sweepBatch bounds one pass.
const sweepBatch = 200

// sweep takes back what other workers left, and makes the jobs that the queue lost. All workers do it, each
// at its own moments; the log lets one of them succeed.
func (w *Worker) sweep(ctx context.Context) {
	suspects := map[db.Lease]bool{}
	third := w.o.LeaseTTL / 3
	for wait(ctx, third*3/4+time.Duration(rand.Int64N(int64(third/2)))) {
		var err error
		suspects, err = w.sweepOnce(ctx, suspects)
		if err != nil && ctx.Err() == nil {
			w.log.Warn("sweep", "error", err)
		}
	}
}

// sweepOnce answers the claims without a lease; those that were seen by the pass before too are taken back.
func (w *Worker) sweepOnce(ctx context.Context, suspects map[db.Lease]bool) (map[db.Lease]bool, error) {
	var all error
	expired, err := w.o.DB.ExpiredLeases(ctx, sweepBatch)
	all = errors.Join(all, err)
	for _, lease := range expired {
		all = errors.Join(all, w.takeBack(ctx, lease))
	}
	unleased, err := w.o.DB.UnleasedClaims(ctx, sweepBatch)
	all = errors.Join(all, err)
	seen := map[db.Lease]bool{}
	for _, lease := range unleased {
		seen[lease] = true
		if suspects[lease] {
			all = errors.Join(all, w.takeBack(ctx, lease))
		}
	}
	missing, err := w.o.DB.Redispatch(ctx)
	if missing > 0 {
		w.log.Info("runs were without a job", "count", missing)
	}
	return seen, errors.Join(all, err)
}

// takeBack lets another worker have the run, then forgets the lease. A refusal means that the claim is over
// already.
func (w *Worker) takeBack(ctx context.Context, lease db.Lease) error {
	stream := run.Stream(lease.Run, lease.Space, lease.Topic)
	value, _, err := w.o.DB.Load(ctx, stream)
	if err != nil {
		return fmt.Errorf("take back run %s: %w", lease.Run, err)
	}
	state, _ := value.(run.State)
	target := run.TargetOf(stream, state)
	if strings.HasPrefix(state.Queue, conversation.LocalQueue) {
		if err = w.harness.Workspaces.KillOlder(ctx, lease.Run, state, lease.Epoch+1); err == nil {
			err = w.failLocal(ctx, target, lease.Epoch)
		}
	} else {
		_, err = w.o.DB.Execute(ctx, run.LoseWorker{Target: target, Epoch: lease.Epoch, Worker: lease.Worker}, systemMeta())
	}
	switch {
	case err == nil:
		w.log.Warn("worker lost", "run", lease.Run, "lost_worker", lease.Worker, "epoch", lease.Epoch)
	case !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Invalid):
		return fmt.Errorf("take back run %s: %w", lease.Run, err)
	}
	return w.o.DB.DropLease(ctx, lease)
}

// failLocal fails a run, and all that wait behind it in its conversation, whose queue only the lost process served: they would
// wait for ever.
func (w *Worker) failLocal(ctx context.Context, target run.Target, epoch int64) error {
	for {
		end := run.Ending{Outcome: run.StatusFailed, Code: run.CodeWorkerLost, Epoch: epoch}
		if _, err := w.o.DB.Execute(ctx, harness.End(target, end), systemMeta()); err != nil {
			return err
		}
		if !target.Task.IsZero() { // nothing waits behind the run of a task
			return nil
		}
		value, _, err := w.o.DB.Load(ctx, conversation.Stream(target.Conversation, target.Space))
		if err != nil {
			return err
		}
		state, _ := value.(conversation.State)
		if state.Idle() {
			return nil
		}
		target.Run, epoch = state.Active.Run, 0
	}
}

func systemMeta() event.Meta { return event.Meta{Actor: event.System, At: time.Now()} }
