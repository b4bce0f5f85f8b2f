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
	case account.Disabled:
		return q.AccountDisable(ctx, projectq.AccountDisableParams{ID: r.StreamID, Disabled: true, Version: r.Version})
	case account.Enabled:
		return q.AccountDisable(ctx, projectq.AccountDisableParams{ID: r.StreamID, Version: r.Version})
	case account.SessionOpened, account.SessionRevoked, account.PasswordChanged, account.ActionDenied, account.DenialsCounted:
		return nil // for auditors: no list shows them
	case account.Erased:
		return q.AccountErase(ctx, projectq.AccountEraseParams{ID: r.StreamID, Version: r.Version})
	}
	return unknown(r)
}
