package projection

import (
	"context"

	"cairn/db/internal/projectq"
	"cairn/domain/claim"
	"cairn/domain/event"
)

func applyClaim(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
	switch e := e.(type) {
	case claim.Taken:
		return q.ClaimTake(ctx, projectq.ClaimTakeParams{
			ID: r.StreamID, ClaimKind: e.ClaimKind, OwnerKind: &e.OwnerKind, OwnerID: &e.Owner, Version: r.Version,
		})
	case claim.Released:
		return q.ClaimRelease(ctx, projectq.ClaimReleaseParams{ID: r.StreamID, Version: r.Version})
	}
	return unknown(r)
}
