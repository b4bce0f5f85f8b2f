package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/note"

	"cairn/db"
	"cairn/db/internal/logq"
	"cairn/domain/event"
)

// VerifyOptions say what the log is compared with.
type VerifyOptions struct {
	Verifier note.Verifier // the public key of the log
	// CheckpointFile is the file outside the database; empty: it is not looked at, and the report says so.
	CheckpointFile string
	// Blobs is where large fields lie; nil: it is not checked whether they are there.
	Blobs *db.BlobStore
	// Progress, when given, is called now and then.
	Progress func(position, head int64)
}

// Report is what Verify looked at. Without an error, all of it is as it must be.
type Report struct {
	LogID       event.ID     `json:"log_id"`
	Incarnation int64        `json:"incarnation"`
	Head        int64        `json:"head"`        // the last position
	Root        string       `json:"root"`        // of the whole log, base64
	Events      int64        `json:"events"`      // with a position
	Waiting     int64        `json:"waiting"`     // committed, still without a position
	Streams     int64        `json:"streams"`     //
	Signed      int64        `json:"signed"`      // positions that a checkpoint covers; later ones are only consistent
	Checkpoints int64        `json:"checkpoints"` // different ones
	Restored    []Checkpoint `json:"restored"`    // every restore that was ever announced
	FileChecked bool         `json:"file_checked"`
	FileLacks   int          `json:"file_lacks"` // 1 after a crash between commit and append, until the next checkpoint
	FileTorn    bool         `json:"file_torn"`  // the last line was cut by a power cut or a full disk
	Blobs       *int64       `json:"blobs"`      // present and unaltered; null: not checked
}

// Beginner is a connection or a pool.
type Beginner interface {
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}

// verification is one run of Verify, in one snapshot of the database.
type verification struct {
	VerifyOptions
	report Report
	tx     pgx.Tx
	q      *logq.Queries

	marks    marks
	tree     tree
	versions map[event.ID]int64 // the last version of each stream, about 40 bytes a stream
	erased   map[event.ID]bool  // subjects whose key was destroyed
}

// Verify recomputes the log from its rows: every leaf, the tree, every signed checkpoint of the database and
// of the file, the order of versions, and that nothing is missing or extra. Writers may go on meanwhile: it
// reads one snapshot. A difference is a *Broken; any other error means that it could not look.
func Verify(ctx context.Context, conn Beginner, o VerifyOptions) (Report, error) {
	v := &verification{VerifyOptions: o, versions: map[event.ID]int64{}, marks: newMarks(o.Verifier)}
	if err := v.readFile(); err != nil { // before the snapshot, which then is ahead of it
		return v.report, err
	}
	if err := v.inSnapshot(ctx, conn); err != nil {
		return v.report, err
	}
	return v.report, v.compareFile(ctx)
}

func (v *verification) inSnapshot(ctx context.Context, conn Beginner) error {
	var err error
	v.tx, err = conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("log verify: %w", err)
	}
	defer v.tx.Rollback(context.WithoutCancel(ctx))
	v.q = logq.New(v.tx)
	for _, step := range []func(context.Context) error{
		v.settings, v.onlyRows, v.identity, v.readMarks, v.checkLives, v.walk, v.checkHead, v.walkWaiting, v.checkCounts, v.checkStreams,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settings lets a long reading live, and pins the plan of the walk: pages by index, also without statistics.
func (v *verification) settings(ctx context.Context) error {
	_, err := v.tx.Exec(ctx, `SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '60s';
		SET LOCAL jit = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off`)
	if err != nil {
		return fmt.Errorf("log verify: %w", err)
	}
	return nil
}

// onlyRows looks at what the other steps rely on: tables of one row, and times that can be read.
func (v *verification) onlyRows(ctx context.Context) error {
	for _, table := range []string{"log_identity", "log_head"} {
		var n int64
		if err := v.tx.QueryRow(ctx, "SELECT count(*) FROM log."+table).Scan(&n); err != nil {
			return fmt.Errorf("log verify: %s: %w", table, err)
		}
		if n != 1 {
			return broken("rows in "+table, 1, n)
		}
	}
	var size *int64
	if err := v.tx.QueryRow(ctx, "SELECT min(size) FROM log.log_checkpoint WHERE NOT isfinite(at)").Scan(&size); err != nil {
		return fmt.Errorf("checkpoints: %w", err)
	}
	if size != nil {
		return broken("columns beside the note of a checkpoint", "a time", "infinity").at(*size)
	}
	return nil
}

func (v *verification) identity(ctx context.Context) error {
	row, err := v.q.LogIdentity(ctx)
	if err != nil {
		return fmt.Errorf("log identity: %w", err)
	}
	v.report.LogID, v.report.Incarnation, v.report.Head = row.LogID, row.Incarnation, row.Head
	if v.Blobs == nil {
		return nil
	}
	v.report.Blobs, v.erased = new(int64), map[event.ID]bool{}
	subjects, err := v.q.SubjectsDestroyed(ctx)
	if err != nil {
		return fmt.Errorf("destroyed keys: %w", err)
	}
	for _, subject := range subjects {
		v.erased[subject] = true
	}
	return nil
}
