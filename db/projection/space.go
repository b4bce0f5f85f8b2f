package projection

import (
	"context"
	"errors"

	"cairn/db/internal/projectq"
	"cairn/domain/event"
	"cairn/domain/space"
)

func applySpace(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
	id := r.StreamID
	switch e := e.(type) {
	case space.Created:
		return errors.Join(
			q.SpaceInsert(ctx, projectq.SpaceInsertParams{ID: id, Personal: e.Personal, Name: text(e.Name), Slug: text(e.Slug), CreatedAt: r.RecordedAt, Version: r.Version}),
			setMember(ctx, q, r, e.Owner, space.Owner))
	case space.MemberAdded:
		return errors.Join(touchSpace(ctx, q, r), setMember(ctx, q, r, e.Account, e.Role))
	case space.MemberRoleChanged:
		return errors.Join(touchSpace(ctx, q, r), setMember(ctx, q, r, e.Account, e.Role))
	case space.MemberRemoved:
		return errors.Join(touchSpace(ctx, q, r),
			q.MembershipRemove(ctx, projectq.MembershipRemoveParams{SpaceID: id, AccountID: e.Account}))
	case space.Erased:
		// The key is destroyed in the same transaction: what is applied later reads as erased anyway, so
		// clearing every table of the space is independent of the order of the streams.
		return errors.Join(
			q.SpaceErase(ctx, projectq.SpaceEraseParams{ID: id, Version: r.Version}),
			q.SpaceEraseAgent(ctx, id), q.SpaceEraseAgentRevision(ctx, id), q.SpaceEraseConversation(ctx, id), q.SpaceEraseTask(ctx, id),
			q.SpaceEraseMessage(ctx, id), q.SpaceEraseRun(ctx, id), q.SpaceEraseToolCall(ctx, id), q.SpaceEraseFile(ctx, id))
	}
	return unknown(r)
}

func touchSpace(ctx context.Context, q *projectq.Queries, r *event.Record) error {
	return q.SpaceTouch(ctx, projectq.SpaceTouchParams{ID: r.StreamID, Version: r.Version})
}

func setMember(ctx context.Context, q *projectq.Queries, r *event.Record, account event.ID, role space.Role) error {
	return q.MembershipSet(ctx, projectq.MembershipSetParams{SpaceID: r.StreamID, AccountID: account, Role: string(role), Since: r.RecordedAt})
}
