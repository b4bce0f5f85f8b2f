package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"cairn/db/read"
	"cairn/domain/dispatch"
	"cairn/domain/event"
)

// RunJob asks a worker to carry a run on. It holds ids only; the log holds the truth. A job too
// many finds nothing to claim.
type RunJob struct {
	Run          event.ID `json:"run"`
	Conversation event.ID `json:"conversation"`  // zero for the run of a task
	Task         event.ID `json:"task,omitzero"` // zero for the run of a conversation
	Space        event.ID `json:"space"`
}

// Kind implements river.JobArgs.
func (RunJob) Kind() string { return "run" }

// FetchCooldown is how soon a waiting worker looks for new jobs, and by how much the queue's notifications
// are debounced. Inserting and working clients use the same value.
const FetchCooldown = 10 * time.Millisecond

func jobParams(jobs []dispatch.Job) []river.InsertManyParams {
	params := make([]river.InsertManyParams, len(jobs))
	for i, job := range jobs {
		params[i] = river.InsertManyParams{
			Args: RunJob{Run: job.Run, Conversation: job.Conversation, Task: job.Task, Space: job.Space},
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

// staleClaim is how long a running job may take to claim its run before another one is inserted. Claiming is
// the first thing that a job does, and a job too many is harmless: so a run whose worker died in between
// waits no longer than this.
const staleClaim = 5 * time.Second

// Redispatch inserts a job for every run that waits for a worker but has no live job: the queue may have
// lost it, the log has not. It answers how many were missing.
func (d *DB) Redispatch(ctx context.Context) (int, error) {
	stale := time.Now().Add(-staleClaim)
	rows, err := d.Read().RunWithoutJob(ctx, read.RunWithoutJobParams{Stale: &stale, Lim: 1000})
	if err != nil {
		return 0, fmt.Errorf("runs without a job: %w", err)
	}
	if len(rows) == 0 {
		return 0, nil
	}
	jobs := make([]dispatch.Job, len(rows))
	for i, row := range rows {
		jobs[i] = dispatch.Job{
			Kind: dispatch.KindRun, Run: row.ID, Conversation: some(row.ConversationID), Task: some(row.TaskID), Space: row.SpaceID, Queue: row.Queue,
		}
	}
	if _, err := d.river.InsertMany(ctx, jobParams(jobs)); err != nil {
		return 0, fmt.Errorf("insert jobs: %w", err)
	}
	return len(jobs), nil
}

// some is the id of a column, zero when it has none.
func some(id *event.ID) event.ID {
	if id == nil {
		return event.ID{}
	}
	return *id
}

// Read gives the generated queries over the projections.
func (d *DB) Read() *read.Queries { return read.New(d.pool) }
