package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/internal/logq"
)

// Restored is to be called once after the database was restored from a backup, as its owner and before any
// process uses it. It begins a new incarnation of the log, higher than all that the database and the
// checkpoint file know, and signs the head of this moment with the mark "restored". From then on readers
// with a cursor of an earlier life are told to start over, and Verify demands of checkpoints of earlier lives
// only that they agree with the log up to this head.
//
// When the file was lost too, a number may be used twice that only the lost file knew. So keep the file.
func Restored(ctx context.Context, conn *pgx.Conn, keys *db.Keyring, path string) (Checkpoint, error) {
	file := File{path}
	inFile, err := file.last(keys.Verifier)
	if err != nil {
		return Checkpoint{}, err
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return Checkpoint{}, fmt.Errorf("restored: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	q := logq.New(tx)
	if err := q.CheckpointLock(ctx); err != nil {
		return Checkpoint{}, fmt.Errorf("restored: %w", err)
	}
	b, err := readBase(ctx, q, keys.Verifier)
	if err != nil {
		return Checkpoint{}, err
	}
	b.incarnation = max(b.incarnation, b.last.Incarnation)
	if inFile != nil {
		if inFile.LogID != b.logID {
			return Checkpoint{}, fmt.Errorf("checkpoint file %s is of log %s, the database is log %s: use the data folder that belongs to it", path, inFile.LogID, b.logID)
		}
		b.incarnation = max(b.incarnation, inFile.Incarnation)
	}
	b.incarnation++
	if _, err := file.catchUp(ctx, q, inFile); err != nil {
		return Checkpoint{}, err
	}
	if err := q.LogIncarnate(ctx, b.incarnation); err != nil {
		return Checkpoint{}, fmt.Errorf("restored: incarnation %d: %w", b.incarnation, err)
	}
	made, signed, err := b.sign(ctx, tx, keys.Signer, b.head, true)
	if err != nil {
		return Checkpoint{}, err
	}
	return *made, file.append(signed)
}
