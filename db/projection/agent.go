package projection

import (
	"context"
	"errors"

	"cairn/db/internal/projectq"
	"cairn/domain/agent"
	"cairn/domain/event"
)

func applyAgent(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
	revised, ok := e.(agent.Revised)
	if !ok {
		return unknown(r)
	}
	return errors.Join(
		q.AgentSet(ctx, projectq.AgentSetParams{
			ID: r.StreamID, SpaceID: r.SpaceID, Revision: revised.Revision, Name: text(revised.Name), Model: revised.Model,
			RevisedAt: r.RecordedAt, Version: r.Version,
		}),
		q.AgentRevisionInsert(ctx, projectq.AgentRevisionInsertParams{
			AgentID: r.StreamID, Revision: revised.Revision, SpaceID: r.SpaceID, Name: text(revised.Name), Model: revised.Model,
			Instructions: text(revised.Instructions), Tools: append([]string{}, revised.Tools...), RevisedBy: r.Actor, RevisedAt: r.RecordedAt,
		}))
}
