package worker

import (
	"context"
	"encoding/json"
	"time"

	"cairn/db"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
	"cairn/worker/harness"
)

// watch brings what the log says about this worker's runs to them. One reader of the whole log serves all of
// them: a reader for each conversation would ask once for every run at each ring of the bell. What it misses
// while it starts over, the heartbeat finds.
func (w *Worker) watch(ctx context.Context) {
	for ctx.Err() == nil {
		identity, err := w.o.DB.Identity(ctx)
		if err == nil {
			err = w.o.DB.Tail(ctx, db.Cursor{Position: identity.Head}, db.Scope{}, w.notice)
		}
		if err != nil && ctx.Err() == nil {
			w.log.Warn("the log cannot be followed", "error", err)
		}
		wait(ctx, time.Second)
	}
}

func (w *Worker) notice(records []event.Record) error {
	for i := range records {
		r := &records[i]
		if r.Kind == (space.Erased{}).Kind() {
			w.keeper.ofSpace(r.StreamID, (*harness.Orders).Erase)
		}
		holding := w.keeper.find(r.StreamID)
		if holding == nil {
			continue
		}
		switch r.Kind {
		case (run.CancelRequested{}).Kind():
			holding.orders.Cancel()
		case (run.WorkerLost{}).Kind():
			var lost struct {
				Epoch int64 `json:"epoch"`
			}
			if err := json.Unmarshal(r.Data, &lost); err == nil && lost.Epoch == holding.lease.Epoch {
				holding.end(harness.ErrLost)
			}
		}
	}
	return nil
}
