package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cairn/db"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/worker/harness"
)

// keeper renews the leases of this worker's runs, by one routine on a connection of its own, and gives up
// those that it could not renew for half their time: there is time for two attempts. Giving up is decided by another routine, on the
// monotonic clock: a database that hangs, or a process that was stopped, cannot delay it.
//
//	taken --renewed every ttl/5--> held --not renewed for ttl/2, or a later epoch holds it--> lost
//	                                |--run ended or released--> dropped
type keeper struct {
	db     *db.DB
	leases *db.Leases
	ttl    time.Duration
	log    *slog.Logger

	mu   sync.Mutex
	runs map[event.ID]*holding
}

// holding is one run that this worker holds.
type holding struct {
	lease   db.Lease
	held    context.Context
	end     context.CancelCauseFunc
	orders  *harness.Orders
	renewed time.Time // with its monotonic reading: when the last renewal was asked for
}

func newKeeper(d *db.DB, ttl time.Duration, log *slog.Logger) *keeper {
	return &keeper{db: d, leases: d.Leases(), ttl: ttl, log: log, runs: map[event.ID]*holding{}}
}

// take writes the lease of a run that was just claimed.
func (k *keeper) take(ctx context.Context, lease db.Lease) (*holding, error) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, k.ttl/2)
	defer cancel()
	lost, err := k.leases.Renew(ctx, k.ttl, lease)
	if err != nil {
		return nil, err
	}
	if len(lost) > 0 {
		return nil, fmt.Errorf("lease of run %s: a later epoch than %d holds it", lease.Run, lease.Epoch)
	}
	held, end := context.WithCancelCause(context.Background())
	h := &holding{lease: lease, held: held, end: end, orders: harness.NewOrders(held), renewed: asked}
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.runs[lease.Run]; old != nil { // an older epoch of ours that has not noticed yet
		old.end(harness.ErrLost)
	}
	k.runs[lease.Run] = h
	return h, nil
}

// drop ends a holding. A lease that cannot be dropped runs out, and the sweep finds the run ended.
func (k *keeper) drop(h *holding) {
	h.end(errors.New("dropped"))
	k.mu.Lock()
	if k.runs[h.lease.Run] == h {
		delete(k.runs, h.lease.Run)
	}
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), k.ttl/2)
	defer cancel()
	if err := k.db.DropLease(ctx, h.lease); err != nil {
		k.log.Warn("a lease is left to run out", "run", h.lease.Run, "error", err)
	}
}

func (k *keeper) all() []*holding {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]*holding, 0, len(k.runs))
	for _, h := range k.runs {
		all = append(all, h)
	}
	return all
}

func (k *keeper) find(id event.ID) *holding {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.runs[id]
}

func (k *keeper) each(order func(*harness.Orders)) {
	for _, h := range k.all() {
		order(h.orders)
	}
}

func (k *keeper) ofSpace(space event.ID, order func(*harness.Orders)) {
	for _, h := range k.all() {
		if h.lease.Space == space {
			order(h.orders)
		}
	}
}

// renew is the routine of the connection. After a failure it comes again soon.
func (k *keeper) renew(ctx context.Context) {
	pause := k.ttl / 5
	for wait(ctx, pause) {
		pause = k.ttl / 5
		if err := k.renewAll(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("leases were not renewed", "error", err)
			pause = k.ttl / 40
		}
		k.checkOrders(ctx)
	}
}

func (k *keeper) renewAll(ctx context.Context) error {
	all := k.all()
	leases := make([]db.Lease, len(all))
	for i, h := range all {
		leases[i] = h.lease
	}
	ctx, cancel := context.WithTimeout(ctx, k.ttl/8)
	defer cancel()
	asked := time.Now()
	k.loseStale(asked) // first: a renewal must not revive what was given up while the process stood still
	lost, err := k.leases.Renew(ctx, k.ttl, leases...)
	if err != nil {
		return err
	}
	gone := map[event.ID]bool{}
	for _, id := range lost {
		gone[id] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range all {
		if gone[h.lease.Run] {
			h.end(harness.ErrLost)
		}
		h.renewed = asked
	}
	return nil
}

// checkOrders reads what the watch may have missed: the heartbeat is the second way of a cancellation.
func (k *keeper) checkOrders(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, k.ttl/6)
	defer cancel()
	for _, h := range k.all() {
		value, _, err := k.db.Load(ctx, run.Stream(h.lease.Run, h.lease.Space, h.lease.Topic))
		state, ok := value.(run.State)
		switch {
		case err != nil || !ok: // the next heartbeat asks again
		case state.Epoch > h.lease.Epoch:
			h.end(harness.ErrLost)
		case state.CancelRequested:
			h.orders.Cancel()
		}
	}
}

// guard gives up runs whose lease was not renewed for too long.
func (k *keeper) guard(ctx context.Context) {
	for wait(ctx, k.ttl/20) {
		k.loseStale(time.Now())
	}
}

func (k *keeper) loseStale(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.runs {
		if now.Sub(h.renewed) > k.ttl/2 {
			h.end(harness.ErrLost)
		}
	}
}

func (k *keeper) close(ctx context.Context) {
	if err := k.leases.Close(ctx); err != nil {
		k.log.Debug("lease connection", "error", err)
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
