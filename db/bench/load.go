package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// warm is how long writers run before they are counted: statements are prepared and connections opened.
const warm = 300 * time.Millisecond

// rate lets n writers repeat do as fast as it goes, and answers how often per second it succeeded. The
// first failure ends it.
func rate(ctx context.Context, n int, length time.Duration, do func(ctx context.Context, writer int) error) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var count atomic.Int64
	var counting, stop atomic.Bool
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for !stop.Load() {
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
				if counting.Load() {
					count.Add(1)
				}
			}
		})
	}
	wait := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	wait(warm)
	counting.Store(true)
	began := time.Now()
	wait(length)
	took, done := time.Since(began), count.Load()
	stop.Store(true)
	wg.Wait()
	return float64(done) / took.Seconds(), context.Cause(ctx)
}
