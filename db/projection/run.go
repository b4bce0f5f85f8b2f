package projection

import (
	"context"
	"encoding/json"
	"errors"

	"cairn/db/internal/projectq"
	"cairn/domain/event"
	"cairn/domain/run"
)

func applyRun(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
	id := r.StreamID
	switch e := e.(type) {
	case run.Queued:
		from := sourceOf(e.Source)
		return q.RunInsert(ctx, projectq.RunInsertParams{
			ID: id, SpaceID: r.SpaceID, ConversationID: known(e.Conversation), TurnID: known(e.Turn), TaskID: known(e.Task),
			Attempt: e.AttemptNumber(), RetryOf: known(e.RetryOf), Continues: known(e.Continues), AgentID: e.Agent, Model: e.Model,
			Queue: e.Queue, QueuedAt: r.RecordedAt, Version: r.Version,
			SourceKind: from.kind, SourceRoot: from.root, SourcePath: from.path, SourceFolder: from.folder,
			SourceFiles: from.files, SourceBytes: from.bytes, SourceManifest: from.manifest,
		})
	case run.Started:
		return q.RunStarted(ctx, projectq.RunStartedParams{ID: id, Epoch: e.Epoch, Worker: &e.Worker, Host: &e.Host, At: &r.RecordedAt, Version: r.Version})
	case run.SandboxPrepared:
		return q.RunSandboxPrepared(ctx, projectq.RunSandboxPreparedParams{ID: id, Report: report(e.Report), Version: r.Version})
	case run.EgressDecided:
		return applyEgress(ctx, q, r, e)
	case run.LimitReached:
		hit, err := json.Marshal([]run.LimitReached{e})
		if err != nil {
			return err
		}
		return q.RunLimitReached(ctx, projectq.RunLimitReachedParams{ID: id, Hit: hit, Version: r.Version})
	case run.SandboxClosed:
		usage, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return q.RunSandboxClosed(ctx, projectq.RunSandboxClosedParams{ID: id, Usage: usage, Version: r.Version})
	case run.CancelRequested:
		return q.RunCancelAsked(ctx, projectq.RunCancelAskedParams{ID: id, Version: r.Version})
	case run.ChangesRecorded:
		return applyChanges(ctx, q, r, e)
	case run.WorkerLost:
		return q.RunRequeued(ctx, projectq.RunRequeuedParams{ID: id, Queue: e.Queue, Version: r.Version})
	case run.Released:
		return q.RunRequeued(ctx, projectq.RunRequeuedParams{ID: id, Queue: e.Queue, Version: r.Version})
	case run.ModelAnswered, run.ToolCalled, run.ToolReturned:
		return applyStep(ctx, q, r, e)
	}
	return applyRunEnd(ctx, q, r, e)
}

func applyStep(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
	id := r.StreamID
	touch := q.RunTouch(ctx, projectq.RunTouchParams{ID: id, Version: r.Version})
	switch e := e.(type) {
	case run.ModelAnswered:
		err := q.RunModelAnswered(ctx, projectq.RunModelAnsweredParams{ID: id, InputTokens: e.Usage.InputTokens, OutputTokens: e.Usage.OutputTokens, Version: r.Version})
		for _, call := range e.Calls {
			err = errors.Join(err, q.ToolCallInsert(ctx, projectq.ToolCallInsertParams{
				RunID: id, Call: call.ID, SpaceID: r.SpaceID, Step: e.Step, Tool: call.Tool, Arguments: text(call.Arguments),
				AskedAt: r.RecordedAt, Version: r.Version,
			}))
		}
		return err
	case run.ToolCalled:
		return errors.Join(touch, q.ToolCallCalled(ctx, projectq.ToolCallCalledParams{RunID: id, Call: e.Call, At: &r.RecordedAt, Version: r.Version}))
	case run.ToolReturned:
		return errors.Join(touch, q.ToolCallReturned(ctx, projectq.ToolCallReturnedParams{
			RunID: id, Call: e.Call, Outcome: e.Outcome, ExitCode: exitCode(e.ExitCode), Output: text(e.Output),
			OutputBytes: &e.OutputBytes, Truncated: &e.Truncated, At: &r.RecordedAt, Version: r.Version,
		}))
	}
	return unknown(r)
}

func applyChanges(ctx context.Context, q *projectq.Queries, r *event.Record, e run.ChangesRecorded) error {
	set := projectq.RunChangesSetParams{
		RunID: r.StreamID, SpaceID: r.SpaceID, Files: e.Totals.Files, Added: e.Totals.Added, Modified: e.Totals.Modified, Deleted: e.Totals.Deleted,
		Renamed: e.Totals.Renamed, Mode: e.Totals.Mode, Type: e.Totals.Type, LinesAdded: e.Totals.LinesAdded, LinesRemoved: e.Totals.LinesRemoved,
		Truncated: e.Truncated, RecordedAt: r.RecordedAt, Version: r.Version,
	}
	if e.Items != nil {
		set.ItemsBlob, set.ItemsSize = &e.Items.Blob, &e.Items.Size
	}
	if e.Diffs != nil {
		set.DiffsBlob, set.DiffsSize = &e.Diffs.Blob, &e.Diffs.Size
	}
	return errors.Join(q.RunTouch(ctx, projectq.RunTouchParams{ID: r.StreamID, Version: r.Version}), q.RunChangesSet(ctx, set))
}

func applyRunEnd(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
	end := projectq.RunEndedParams{ID: r.StreamID, At: &r.RecordedAt, Version: r.Version}
	switch e := e.(type) {
	case run.Succeeded:
		end.State, end.Answer = string(run.StatusSucceeded), text(e.Answer)
	case run.Failed:
		end.State, end.FailureCode, end.FailureMessage = string(run.StatusFailed), &e.Code, text(e.Message)
	case run.Cancelled:
		end.State = string(run.StatusCancelled)
	default:
		return unknown(r)
	}
	return q.RunEnded(ctx, end)
}

// known is the column of an id that may be none.
func known(id event.ID) *event.ID {
	if id.IsZero() {
		return nil
	}
	return &id
}

// report is null when there is none; a JSON null in the event means the same.
func report(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

func exitCode(code *int) *int64 {
	if code == nil {
		return nil
	}
	wide := int64(*code)
	return &wide
}
