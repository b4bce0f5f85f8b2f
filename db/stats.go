package db

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"cairn/domain/fault"
)

// Stats is what this process did with the log since it was opened. Counters only grow.
type Stats struct {
	Appends   int64     // flushes that are in the log
	Events    int64     // in them
	Conflicts int64     // flushes that were refused because a stream had moved on
	Failures  int64     // flushes that failed although nothing was wrong with them: the database, or no time left
	Append    Durations // of the flushes that are in the log, with waiting for a connection

	Sequenced int64     // events that this process gave positions, also those of others
	Sequence  Durations // of the calls that did
}

// Durations is a histogram. Counts has one number for each of Bounds, how many took at most that long and longer
// than the bound before, and one more for what took longer than the last.
type Durations struct {
	Bounds []time.Duration
	Counts []int64
	Sum    time.Duration
}

// Stats answers the counters as they are now.
func (d *DB) Stats() Stats {
	s := d.stats
	return Stats{
		Appends: s.appends.Load(), Events: s.events.Load(), Conflicts: s.conflicts.Load(), Failures: s.failures.Load(), Append: s.append.snapshot(),
		Sequenced: s.sequenced.Load(), Sequence: s.sequence.snapshot(),
	}
}

type counters struct {
	appends, events, conflicts, failures, sequenced atomic.Int64
	append, sequence                                durations
}

// sent counts what became of a flush.
func (c *counters) sent(events int, took time.Duration, err error) {
	switch {
	case err == nil:
		c.appends.Add(1)
		c.events.Add(int64(events))
		c.append.observe(took)
	case errors.Is(err, errConflict):
		c.conflicts.Add(1)
	case errors.Is(err, errDuplicate), errors.Is(err, context.Canceled):
	case fault.KindOf(err) == "", fault.Is(err, fault.Unavailable):
		c.failures.Add(1)
	}
}

// placed counts a call that gave positions, and tells next, which may be nil.
func (c *counters) placed(next func(int, time.Duration)) func(int, time.Duration) {
	return func(events int, took time.Duration) {
		c.sequenced.Add(int64(events))
		c.sequence.observe(took)
		if next != nil {
			next(events, took)
		}
	}
}

// bounds are around what appends take, from a quiet local database to one that is about to be given up.
var bounds = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second,
}

type durations struct {
	counts [len(bounds) + 1]atomic.Int64
	sum    atomic.Int64
}

func (h *durations) observe(took time.Duration) {
	i := 0
	for i < len(bounds) && took > bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(took))
}

func (h *durations) snapshot() Durations {
	s := Durations{Bounds: bounds[:], Counts: make([]int64, len(h.counts)), Sum: time.Duration(h.sum.Load())}
	for i := range h.counts {
		s.Counts[i] = h.counts[i].Load()
	}
	return s
}
