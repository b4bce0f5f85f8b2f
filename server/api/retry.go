package api

import (
	"context"

	"cairn/db/read"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/task"
)

// RunRetried names the new attempt and what it belongs to.
type RunRetried struct {
	Run          event.ID  `json:"run_id" format:"uuid"`
	Attempt      int64     `json:"attempt"`
	RetryOf      event.ID  `json:"retry_of" format:"uuid"`
	Task         *event.ID `json:"task_id" format:"uuid" doc:"null for the run of a conversation."`
	Conversation *event.ID `json:"conversation_id" format:"uuid" doc:"null for the run of a task."`
	Turn         *event.ID `json:"turn_id" format:"uuid" doc:"The new turn; null for the run of a task."`
	Version      int64     `json:"version" doc:"Of the task or the conversation."`
}

// ModelIn names another model.
type ModelIn struct {
	Model string `json:"model,omitempty" maxLength:"128" doc:"That of the repeated run unless given."`
}

type runRetryIn struct {
	Keyed
	OneRun
	Body *ModelIn // may be left out
}

func (a *API) retryRun(ctx context.Context, in *runRetryIn) (*answer[RunRetried], error) {
	row, err := a.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	model := ""
	if in.Body != nil {
		model = in.Body.Model
	}
	command, owner, err := retryOf(row, model)
	if err != nil {
		return nil, err
	}
	result, err := a.execute(ctx, command, in.IdempotencyKey, in)
	made, err := decoded[run.Answer](result, err)
	if err != nil {
		return nil, err
	}
	version, err := a.version(ctx, owner, result)
	if err != nil {
		return nil, err
	}
	next, err := a.run(ctx, made.Run)
	if err != nil {
		return nil, err
	}
	return reply(RunRetried{
		Run: next.ID, Attempt: next.Attempt, RetryOf: row.ID, Task: next.TaskID, Conversation: next.ConversationID, Turn: next.TurnID, Version: version,
	}), nil
}

// retryOf is the command that repeats a run, and the stream that it belongs to.
func retryOf(row read.Run, model string) (event.Command, event.Ref, error) {
	ids, err := newIDs(3)
	if err != nil {
		return nil, event.Ref{}, err
	}
	if row.TaskID != nil {
		return task.Retry{Task: *row.TaskID, Space: row.SpaceID, Agent: row.AgentID, Run: ids[0], Of: row.ID, Model: model}, task.Stream(*row.TaskID, row.SpaceID), nil
	}
	thread := idOf(row.ConversationID)
	return conversation.RetryRun{
		Conversation: thread, Space: row.SpaceID, Agent: row.AgentID, Of: row.ID, Run: ids[0], Turn: ids[1], Message: ids[2], Model: model,
	}, conversation.Stream(thread, row.SpaceID), nil
}

func newIDs(n int) ([]event.ID, error) {
	ids := make([]event.ID, n)
	var err error
	for i := range ids {
		if ids[i], err = newID(); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// idOf is the id of a column, zero when it has none.
func idOf(id *event.ID) event.ID {
	if id == nil {
		return event.ID{}
	}
	return *id
}
