package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"cairn/db/read"
	"cairn/domain/dispatch"
	"cairn/domain/event"
)

// RunJob asks a worker to carry a run on. It holds ids only; the log holds the truth. There is at most one
// live job per run.
type RunJob struct {
	Run          event.ID `json:"run" river:"unique"`
	Conversation event.ID `json:"conversation"`
	Space        event.ID `json:"space"`
}

// Kind implements river.JobArgs.
func (RunJob) Kind() string { return "run" }

// FetchCooldown is how soon a waiting worker looks for new jobs, and by how much the queue's notifications
// are debounced. Inserting and working clients use the same value.
const FetchCooldown = 10 * time.Millisecond

// liveStates are those in which a job will still be worked. Completed ones do not count: a run may need
// several jobs in its life.
var liveStates = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
	rivertype.JobStateRunning, rivertype.JobStateScheduled,
}

func jobParams(jobs []dispatch.Job) []river.InsertManyParams {
	params := make([]river.InsertManyParams, len(jobs))
	for i, job := range jobs {
		params[i] = river.InsertManyParams{
			Args: RunJob{Run: job.Run, Conversation: job.Conversation, Space: job.Space},
			InsertOpts: &river.InsertOpts{
				Queue:       job.Queue,
				MaxAttempts: 1, // a run that is lost is dispatched again by its own event
			},
		}
	}
	return params
}

func (d *DB) insertJobs(ctx context.Context, tx pgx.Tx, jobs []dispatch.Job) error {
	if _, err := d.river.InsertManyTx(ctx, tx, jobParams(jobs)); err != nil {
		return fmt.Errorf("insert jobs: %w", err)
	}
	return nil
}

// Redispatch inserts a job for every run that waits for a worker but has no live job: the queue may have
// lost it, the log has not. It answers how many were missing.
func (d *DB) Redispatch(ctx context.Context) (int, error) {
	rows, err := d.Read().RunQueuedActive(ctx, 1000)
	if err != nil {
		return 0, fmt.Errorf("queued runs: %w", err)
	}
	missing := 0
	for _, row := range rows {
		job := dispatch.Job{Kind: "run", Run: row.ID, Conversation: row.ConversationID, Space: row.SpaceID, Queue: row.Queue}
		params := jobParams([]dispatch.Job{job})[0]
		params.InsertOpts.UniqueOpts = river.UniqueOpts{ByArgs: true, ByState: liveStates}
		result, err := d.river.Insert(ctx, params.Args, params.InsertOpts)
		if err != nil {
			return missing, fmt.Errorf("insert job of run %s: %w", row.ID, err)
		}
		if !result.UniqueSkippedAsDuplicate {
			missing++
		}
	}
	return missing, nil
}

// Read gives the generated queries over the projections.
func (d *DB) Read() *read.Queries { return read.New(d.pool) }
