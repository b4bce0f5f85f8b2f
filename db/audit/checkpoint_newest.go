package audit

import (
	"context"
	"fmt"

	"cairn/db"
	"cairn/db/internal/logq"
)

// NewestNote is the last signed note in the database, for keeping elsewhere; empty while nothing is signed.
func NewestNote(ctx context.Context, d *db.DB) (string, error) {
	row, err := logq.New(d.Pool()).CheckpointLast(ctx)
	if db.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("newest checkpoint: %w", err)
	}
	return row.Note, nil
}
