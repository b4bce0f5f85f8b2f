package projection

import (
	"context"

	"cairn/db/internal/projectq"
	"cairn/domain/account"
	"cairn/domain/event"
)

func applyAccount(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
	switch e := e.(type) {
	case account.Opened:
		return q.AccountInsert(ctx, projectq.AccountInsertParams{
			ID: r.StreamID, AccountKind: e.AccountKind, Email: text(e.Email), Name: text(e.Name), OpenedAt: r.RecordedAt, Version: r.Version,
		})
	case account.Erased:
		return q.AccountErase(ctx, projectq.AccountEraseParams{ID: r.StreamID, Version: r.Version})
	}
	return unknown(r)
}
