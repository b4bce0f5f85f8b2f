package projection

import (
	"context"

	"cairn/db/internal/projectq"
	"cairn/domain/event"
	"cairn/domain/file"
)

func applyFile(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
	switch e := e.(type) {
	case file.Stored:
		return q.FileSet(ctx, projectq.FileSetParams{
			ID: r.StreamID, SpaceID: r.SpaceID, Path: text(e.Path), Sha256: text(e.Digest), MediaType: e.MediaType, Executable: e.Executable,
			Size: e.Content.Size, Blob: e.Content.Blob, StoredBy: r.Actor, StoredAt: r.RecordedAt, Version: r.Version,
		})
	case file.Removed:
		return q.FileRemove(ctx, r.StreamID)
	}
	return unknown(r)
}
