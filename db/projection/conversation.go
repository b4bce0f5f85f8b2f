package projection

import (
	"context"
	"errors"

	"cairn/db/internal/projectq"
	"cairn/domain/conversation"
	"cairn/domain/event"
)

func applyConversation(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
	id := r.StreamID
	switch e := e.(type) {
	case conversation.Opened:
		from := sourceOf(e.Source)
		return q.ConversationInsert(ctx, projectq.ConversationInsertParams{
			ID: id, SpaceID: r.SpaceID, AgentID: e.Agent, Title: text(e.Title), TitleLower: lower(e.Title), OpenedBy: r.Actor, At: r.RecordedAt, Version: r.Version,
			SourceKind: from.kind, SourceRoot: from.root, SourcePath: from.path, SourceFolder: from.folder,
			SourceFiles: from.files, SourceBytes: from.bytes, SourceManifest: from.manifest,
		})
	case conversation.MessagePosted:
		return errors.Join(
			q.ConversationMessagePosted(ctx, projectq.ConversationMessagePostedParams{ID: id, At: r.RecordedAt, Version: r.Version}),
			q.MessageInsert(ctx, projectq.MessageInsertParams{
				ID: e.Message, ConversationID: id, SpaceID: r.SpaceID, TurnID: e.Turn, RunID: e.Run, Author: e.Author,
				Text: text(e.Text), PostedAt: r.RecordedAt, Version: r.Version,
			}))
	case conversation.TurnStarted:
		return errors.Join(
			q.ConversationTurnStarted(ctx, projectq.ConversationTurnStartedParams{ID: id, Number: e.Number, RunID: &e.Run, At: r.RecordedAt, Version: r.Version}),
			q.MessageTurnStarted(ctx, projectq.MessageTurnStartedParams{RunID: e.Run, TurnID: e.Turn, TurnNumber: &e.Number}))
	case conversation.TurnEnded:
		return errors.Join(
			q.ConversationTurnEnded(ctx, projectq.ConversationTurnEndedParams{ID: id, RunID: &e.Run, At: r.RecordedAt, Version: r.Version}),
			q.MessageTurnEnded(ctx, projectq.MessageTurnEndedParams{RunID: e.Run, TurnID: e.Turn, Outcome: string(e.Outcome)}))
	}
	return unknown(r)
}
