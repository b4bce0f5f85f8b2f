package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"cairn/sandbox/layer"
)

// Names of the limits in a [Hit]. They are part of the contract.
const (
	LimitMemory = "memory" // the kernel ended a process for want of memory
	LimitPids   = "pids"   // a fork was refused
	LimitDisk   = "disk"   // bytes of the workspace's upper layer
	LimitInodes = "inodes" // files and folders of it
	LimitVolume = "volume" // bytes left on the volume of the run folder
	LimitDepth  = "depth"  // levels of folders
	LimitOutput = "output" // bytes of one stream of a call
	LimitTime   = "time"   // of one call, nanoseconds
)

// Hit is a limit that was reached. Disk, inodes, volume and depth are found by
// a watchdog, which ends the sandbox; Measured is what it read after everything
// inside was frozen, so that the difference to Allowed is the overshoot.
type Hit struct {
	Limit    string  `json:"limit"`
	Count    uint64  `json:"count"`    // how often, since the last look
	Allowed  uint64  `json:"allowed"`  // unit of the limit
	Measured *uint64 `json:"measured"` // null: the kernel does not tell
	By       string  `json:"by"`       // kernel, watchdog or worker
}

func (h Hit) String() string {
	if h.Measured == nil {
		return fmt.Sprintf("limit %s of %d reached", h.Limit, h.Allowed)
	}
	return fmt.Sprintf("limit %s of %d reached: %d", h.Limit, h.Allowed, *h.Measured)
}

// OverLimitError means that the watchdog ended the sandbox. It is ErrHandLost
// too: running calls are in doubt.
type OverLimitError struct{ Hit Hit }

func (e *OverLimitError) Error() string { return "ended by the watchdog: " + e.Hit.String() }

const (
	watchEvery = 250 * time.Millisecond
	// A walk of the upper may take one part in watchShare of the time: with very
	// many files the watchdog looks less often instead of using up a core.
	watchShare = 5
	freezeTime = 2 * time.Second
)

// watchdog looks at what the sandbox takes of the disk; there is no quota to
// do it.
type watchdog struct {
	instance *Instance
	upper    string
	limits   Limits
	stop     context.CancelFunc
	done     chan struct{}

	mu   sync.Mutex
	over *Hit
	size layer.Size
	last layer.Free
	rest time.Time // no walk before
}

func (i *Instance) watch(look bool) *watchdog {
	ctx, stop := context.WithCancel(context.Background())
	w := &watchdog{instance: i, upper: i.Upper(), limits: i.spec.Limits, stop: stop, done: make(chan struct{})}
	if look {
		go w.run(ctx)
	} else {
		close(w.done)
	}
	return w
}

func (w *watchdog) run(ctx context.Context) {
	defer close(w.done)
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.instance.Lost():
			return
		case <-t.C:
		}
		if hit := w.look(ctx); hit != nil && ctx.Err() == nil {
			w.end(*hit)
			return
		}
	}
}

// end freezes, measures what was written until then, and kills. The hit is
// there before the hand is lost, for whoever asks why.
func (w *watchdog) end(hit Hit) {
	ctx, cancel := context.WithTimeout(context.Background(), freezeTime)
	defer cancel()
	_ = w.instance.Freeze(ctx) // what does not freeze in time is killed all the same
	w.mu.Lock()
	w.rest, w.last = time.Time{}, layer.Free{}
	w.mu.Unlock()
	if again := w.look(ctx); again != nil && again.Limit == hit.Limit {
		hit = *again
	}
	w.mu.Lock()
	w.over = &hit
	w.mu.Unlock()
	w.instance.client.Lose(&OverLimitError{hit})
	killing, stop := context.WithTimeout(context.Background(), cleanupTimeout)
	defer stop()
	_ = w.instance.Kill(killing) // Close reports what it cannot end
}

// look gives the first limit that is passed.
func (w *watchdog) look(ctx context.Context) *Hit {
	free, err := layer.FreeOf(w.upper)
	if err != nil {
		return nil // the folder is gone: Close will say so
	}
	if free.Bytes < w.limits.VolumeFree {
		return &Hit{Limit: LimitVolume, Count: 1, Allowed: w.limits.VolumeFree, Measured: &free.Bytes, By: "watchdog"}
	}
	w.mu.Lock()
	skip := free == w.last || time.Now().Before(w.rest)
	w.mu.Unlock()
	if skip {
		return nil
	}
	begin := time.Now()
	size, err := layer.Measure(ctx, w.upper)
	w.mu.Lock()
	w.size, w.last, w.rest = size, free, time.Now().Add(watchShare*time.Since(begin)-watchEvery)
	w.mu.Unlock()
	hit := func(limit string, allowed, measured uint64) *Hit {
		return &Hit{Limit: limit, Count: 1, Allowed: allowed, Measured: &measured, By: "watchdog"}
	}
	switch {
	case errors.Is(err, layer.ErrTooDeep):
		return &Hit{Limit: LimitDepth, Count: 1, Allowed: layer.MaxDepth, By: "watchdog"}
	case size.Bytes > w.limits.Disk:
		return hit(LimitDisk, w.limits.Disk, size.Bytes)
	case size.Inodes > w.limits.Inodes:
		return hit(LimitInodes, w.limits.Inodes, size.Inodes)
	}
	return nil
}

// hit gives what the watchdog ended the sandbox for.
func (w *watchdog) hit() *Hit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// OverLimit tells for which limit the watchdog ended the sandbox; nil when it
// did not.
func (i *Instance) OverLimit() *Hit { return i.dog.hit() }

// checkVolume refuses a run folder on a volume that is full already, and sees
// that the watchdog can see.
func checkVolume(ctx context.Context, s Spec) error {
	free, err := layer.FreeOf(s.RunDir)
	if err != nil {
		return refuseBy(DiskWatchdog, err)
	}
	if _, err := layer.Measure(ctx, filepath.Join(s.RunDir, "upper")); err != nil && !errors.Is(err, layer.ErrTooDeep) {
		return refuseBy(DiskWatchdog, err)
	}
	if free.Bytes < s.Limits.VolumeFree {
		return refuse(DiskWatchdog, fmt.Sprintf("%d bytes are free on the volume of %s, at least %d must be", free.Bytes, s.RunDir, s.Limits.VolumeFree), nil)
	}
	return nil
}
