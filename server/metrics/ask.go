package metrics

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"cairn/domain/conversation"
	"cairn/domain/run"
)

const (
	askTime = 2 * time.Second // bounds what a scrape asks the database
	kept    = 5 * time.Second // how long the counts are good
)

// The states that have gauges, also when nothing is in them.
var (
	openRuns = []string{string(run.StatusQueued), string(run.StatusStarting), string(run.StatusRunning)}
	openJobs = []string{"available", "pending", "retryable", "running", "scheduled"} // of River
)

// job is a queue and a state of its jobs.
type job struct{ queue, state string }

// counts is what the database has of runs and jobs that are not finished.
type counts struct {
	runs map[string]int64
	jobs map[job]int64
}

// asker counts runs and jobs at most once in a while. A failure is kept as long, so that scrapes do not weigh on
// a database in trouble.
type asker struct {
	db log

	mu    sync.Mutex
	asked time.Time
	last  counts
	err   error
}

func (a *asker) counts(ctx context.Context) (counts, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked.IsZero() || time.Since(a.asked) >= kept {
		a.last, a.err = a.ask(ctx)
		a.asked = time.Now()
	}
	return a.last, a.err
}

func (a *asker) ask(ctx context.Context) (counts, error) {
	runs, failed := a.db.Read().RunOpenCounts(ctx)
	jobs, err := a.db.Read().JobCounts(ctx)
	if err := errors.Join(failed, err); err != nil {
		return counts{}, err
	}
	c := counts{runs: map[string]int64{}, jobs: map[job]int64{}}
	for _, state := range openRuns {
		c.runs[state] = 0
	}
	for _, state := range openJobs {
		c.jobs[job{conversation.DefaultQueue, state}] = 0
	}
	for _, row := range runs {
		c.runs[row.State] = row.Runs
	}
	for _, row := range jobs {
		c.jobs[job{queueOf(row.Queue), row.State}] += row.Jobs
	}
	return c, nil
}

// queueOf keeps the label's values few: the queues of single processes have ids in their names.
func queueOf(name string) string {
	switch {
	case name == conversation.DefaultQueue:
		return name
	case strings.HasPrefix(name, conversation.LocalQueue):
		return "local"
	}
	return "other"
}
