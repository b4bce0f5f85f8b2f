package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/note"

	"cairn/db/internal/logq"
	"cairn/domain/event"
)

// leafBatch bounds one message to and from the database, so that it fits into a socket's buffer: a process
// frozen between messages loses its transaction by timeout, one frozen inside a message does not.
const leafBatch = 1000

// base is what the next checkpoint stands on.
type base struct {
	logID       event.ID
	incarnation int64
	head        int64 // last position given
	last        Checkpoint
	signed      bool // there is a last checkpoint; else last is that of an empty log
}

// readBase reads the identity of the log and its last checkpoint.
func readBase(ctx context.Context, q *logq.Queries, verifier note.Verifier) (base, error) {
	identity, err := q.LogIdentity(ctx)
	if err != nil {
		return base{}, fmt.Errorf("checkpoint: %w", err)
	}
	b := base{logID: identity.LogID, incarnation: identity.Incarnation, head: identity.Head}
	b.last = Checkpoint{LogID: b.logID, Incarnation: 1}
	row, err := q.CheckpointLast(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return b, nil
	}
	if err != nil {
		return base{}, fmt.Errorf("checkpoint: %w", err)
	}
	if b.last, err = openCheckpoint(row.Note, verifier); err != nil {
		return base{}, fmt.Errorf("checkpoint of size %d in the database: %w: run 'cairn log verify'", row.Size, err)
	}
	if b.last.LogID != b.logID {
		return base{}, fmt.Errorf("the database is log %s, its last checkpoint is of log %s: run 'cairn log verify'", b.logID, b.last.LogID)
	}
	b.signed = true
	return b, nil
}

// agree compares the database with the file. A database that knows less was restored from a backup, or cut.
func (b *base) agree(inFile *Checkpoint) error {
	const fix = "if the database was restored from a backup run 'cairn admin restored', else 'cairn log verify'"
	switch {
	case b.last.Incarnation != b.incarnation:
		return fmt.Errorf("the database is in incarnation %d, its last checkpoint in %d: %s", b.incarnation, b.last.Incarnation, fix)
	case b.head < b.last.Size:
		return fmt.Errorf("the log ends at position %d, a checkpoint was signed at %d: %s", b.head, b.last.Size, fix)
	case inFile == nil:
		return nil
	case inFile.LogID != b.logID:
		return fmt.Errorf("the checkpoint file is of log %s, the database is log %s: each database needs a data folder of its own", inFile.LogID, b.logID)
	case b.last.before(*inFile):
		return fmt.Errorf("the checkpoint file ends at position %d of incarnation %d, the checkpoints of the database at %d of %d: %s",
			inFile.Size, inFile.Incarnation, b.last.Size, b.last.Incarnation, fix)
	}
	return nil
}

// sign extends the tree from the last checkpoint to a size, signs its root and commits.
func (b *base) sign(ctx context.Context, tx pgx.Tx, signer note.Signer, size int64, restored bool) (*Checkpoint, string, error) {
	q := logq.New(tx)
	t, err := loadTree(ctx, q, b.last.Size)
	if err != nil {
		return nil, "", err
	}
	if b.signed && t.root() != b.last.Root {
		return nil, "", fmt.Errorf("the stored tree of size %d has root %s, its checkpoint says %s: run 'cairn log verify'", t.size, t.root(), b.last.Root)
	}
	if err := extend(ctx, q, t, size); err != nil {
		return nil, "", err
	}
	made := Checkpoint{LogID: b.logID, Size: t.size, Root: t.root(), Incarnation: b.incarnation, At: time.Now().UTC().Truncate(time.Microsecond), Restored: restored}
	signed, err := made.sign(signer)
	if err != nil {
		return nil, "", err
	}
	err = q.CheckpointInsert(ctx, logq.CheckpointInsertParams{Incarnation: made.Incarnation, Size: made.Size, Note: signed, At: made.At})
	if err != nil {
		return nil, "", fmt.Errorf("checkpoint of size %d: %w", made.Size, err)
	}
	// The file must never be ahead of what a crash leaves of the database.
	if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = on"); err != nil {
		return nil, "", err
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, "", fmt.Errorf("checkpoint of size %d: %w", made.Size, err)
	}
	return &made, signed, nil
}

// extend adds the leaves up to a size to the tree and stores their hashes.
func extend(ctx context.Context, q *logq.Queries, t *tree, size int64) error {
	for t.size < size {
		leaves, err := q.LeavesSince(ctx, logq.LeavesSinceParams{After: t.size, Lim: int32(min(leafBatch, size-t.size))})
		if err != nil {
			return fmt.Errorf("leaves after %d: %w", t.size, err)
		}
		if len(leaves) == 0 {
			return fmt.Errorf("position %d has no event: run 'cairn log verify'", t.size+1)
		}
		var insert logq.TreeInsertParams
		for _, leaf := range leaves {
			if leaf.Position != t.size+1 {
				return fmt.Errorf("position %d has no event: run 'cairn log verify'", t.size+1)
			}
			index := t.stored()
			for i, hash := range t.add(leaf.LeafHash) {
				insert.Indexes = append(insert.Indexes, index+int64(i))
				insert.Hashes = append(insert.Hashes, hash[:])
			}
		}
		if err := q.TreeInsert(ctx, insert); err != nil {
			return fmt.Errorf("tree after %d: %w", t.size, err)
		}
	}
	return nil
}
