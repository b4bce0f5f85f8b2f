package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cairn/db"
	"cairn/db/internal/logq"
)

const (
	// checkpointEvery is the longest time that a position waits for a signature.
	checkpointEvery = time.Second
	// checkpointRest is how young a checkpoint is that another process needs not follow with its own.
	checkpointRest = checkpointEvery / 2
	// checkpointSpan bounds the positions of one checkpoint, and so the length of its transaction.
	checkpointSpan = 64_000
	// farewell bounds the last checkpoint of a process that ends.
	farewell = 2 * time.Second
)

// Checkpointer extends the tree and signs its head.
//
//	waiting --a second passed--> locked --news--> extended --commit--> signed --append--> in the file
//	   ^                            |                                                         |
//	   +--- somebody else, no news -+---------------------------------------------------------+
//
// Any process may run one; a lock that ends with the transaction lets one work at a time, and the others do
// not wait for it. No new checkpoint is made before the file has all earlier ones. So after a crash at any
// point the file lacks at most the last one, and the next checkpointer appends it.
type Checkpointer struct {
	pool *pgxpool.Pool
	keys *db.Keyring
	file File
	log  *slog.Logger
}

// NewCheckpointer makes one for an open database. path is the checkpoint file of the data folder.
func NewCheckpointer(d *db.DB, path string, log *slog.Logger) *Checkpointer {
	return &Checkpointer{pool: d.Pool(), keys: d.Keys(), file: File{path}, log: log}
}

// Run makes checkpoints until ctx ends, and a last one then. It must end before the database is closed.
func (c *Checkpointer) Run(ctx context.Context) {
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	healthy := true
	note := func(err error) {
		if err != nil && healthy {
			c.log.Error("the log is not being signed", "error", err)
		}
		healthy = err == nil
	}
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
			defer cancel()
			_, err := c.Once(last)
			note(err)
			return
		case <-tick.C:
		}
		if _, err := c.all(ctx, checkpointRest); ctx.Err() == nil {
			note(err)
		}
	}
}

// Once signs the head as it is now, or returns nil when nothing is new since the last checkpoint or another
// process is at it.
func (c *Checkpointer) Once(ctx context.Context) (*Checkpoint, error) { return c.all(ctx, 0) }

// all makes checkpoints until the head is reached; more than one only when very much is new.
func (c *Checkpointer) all(ctx context.Context, rest time.Duration) (*Checkpoint, error) {
	var newest *Checkpoint
	for {
		made, more, err := c.once(ctx, rest)
		if made != nil {
			newest = made
		}
		if err != nil || !more {
			return newest, err
		}
		rest = 0
	}
}

func (c *Checkpointer) once(ctx context.Context, rest time.Duration) (made *Checkpoint, more bool, err error) {
	inFile, err := c.file.last(c.keys.Verifier) // before the database is read, which is always ahead of it
	if err != nil {
		return nil, false, err
	}
	tx, err := c.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, false, fmt.Errorf("checkpoint: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	q := logq.New(tx)
	if locked, err := q.CheckpointTryLock(ctx); err != nil || !locked {
		return nil, false, err
	}
	base, err := readBase(ctx, q, c.keys.Verifier)
	if err != nil {
		return nil, false, err
	}
	if err := base.agree(inFile); err != nil {
		return nil, false, err
	}
	if behind, err := c.file.catchUp(ctx, q, inFile); err != nil || behind {
		return nil, behind, err
	}
	if age := time.Since(base.last.At); base.last.Size == base.head || age >= 0 && age < rest {
		return nil, false, nil
	}
	made, signed, err := base.sign(ctx, tx, c.keys.Signer, min(base.head, base.last.Size+checkpointSpan), false)
	if err != nil {
		return nil, false, err
	}
	return made, made.Size < base.head, c.file.append(signed)
}

// catchUp appends what the database has and the file lacks: the last checkpoint of a process that ended
// between commit and append, or many when this folder had no process for a while.
func (f File) catchUp(ctx context.Context, q *logq.Queries, inFile *Checkpoint) (bool, error) {
	after := logq.CheckpointsAfterParams{Lim: 200}
	if inFile != nil {
		after.Incarnation, after.Size = inFile.Incarnation, inFile.Size
	}
	for behind := false; ; behind = true {
		rows, err := q.CheckpointsAfter(ctx, after)
		if err != nil || len(rows) == 0 {
			return behind, err
		}
		notes := make([]string, len(rows))
		for i, row := range rows {
			notes[i] = row.Note
			after.Incarnation, after.Size = row.Incarnation, row.Size
		}
		if err := f.append(notes...); err != nil {
			return true, err
		}
	}
}

// Last returns the newest signed note of the database; empty when there is none.
func (c *Checkpointer) Last(ctx context.Context) (string, error) {
	row, err := logq.New(c.pool).CheckpointLast(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return row.Note, err
}
