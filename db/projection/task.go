package projection

import (
	"context"

	"cairn/db/internal/projectq"
	"cairn/domain/event"
	"cairn/domain/task"
)

// applyTask leaves the task's prompt to the log: who asks for one task reads it there, and lists stay small.
func applyTask(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
	id := r.StreamID
	switch e := e.(type) {
	case task.Opened:
		from := sourceOf(e.Source)
		return q.TaskInsert(ctx, projectq.TaskInsertParams{
			ID: id, SpaceID: r.SpaceID, AgentID: e.Agent, Title: text(e.Title), TitleLower: lower(e.Title), Model: e.Model,
			OpenedBy: r.Actor, At: r.RecordedAt, Version: r.Version,
			SourceKind: from.kind, SourceRoot: from.root, SourcePath: from.path, SourceFolder: from.folder,
			SourceFiles: from.files, SourceBytes: from.bytes, SourceManifest: from.manifest,
		})
	case task.AttemptStarted:
		return q.TaskAttemptStarted(ctx, projectq.TaskAttemptStartedParams{ID: id, Attempt: e.Attempt, RunID: &e.Run, At: r.RecordedAt, Version: r.Version})
	case task.AttemptEnded:
		outcome := string(e.Outcome)
		return q.TaskAttemptEnded(ctx, projectq.TaskAttemptEndedParams{ID: id, Outcome: &outcome, At: r.RecordedAt, Version: r.Version})
	}
	return unknown(r)
}
