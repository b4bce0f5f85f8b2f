package bench

import (
	"context"
	"sync"
	"time"

	"cairn/db"
	"cairn/domain/event"
)

// watch notes when a reader saw each event.
type watch struct {
	mu      sync.Mutex
	arrived map[event.ID]time.Time
}

func (w *watch) see(records []event.Record) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range records {
		w.arrived[records[i].ID] = now
	}
}

type appended struct {
	id   event.ID
	took time.Duration
	at   time.Time
}

// pace appends 50 events a second to each job and answers, in milliseconds, how long each append took and
// how long after its commit the event was seen.
func (w *watch) pace(ctx context.Context, d *db.DB, jobs []*job, length time.Duration) (appends, delays []float64, err error) {
	var mu sync.Mutex
	var all []appended
	var wg sync.WaitGroup
	for i, j := range jobs {
		wg.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
			for end := time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; <-tick.C {
				began := time.Now()
				records, aerr := j.append(ctx, d, j.next())
				now := time.Now()
				mu.Lock()
				if aerr != nil {
					err = aerr
					mu.Unlock()
					return
				}
				all = append(all, appended{records[0].ID, now.Sub(began), now})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	time.Sleep(500 * time.Millisecond) // the last ones arrive
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range all {
		appends = append(appends, milliseconds(a.took))
		if at, ok := w.arrived[a.id]; ok {
			delays = append(delays, milliseconds(max(0, at.Sub(a.at))))
		}
	}
	return appends, delays, err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
