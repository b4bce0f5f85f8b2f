package api

import (
	"context"
	"fmt"

	"cairn/db/read"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/task"
)

const modeRetry = "retry" // the other one is continue

type taskRunsIn struct {
	OneTask
	PageIn
}

type taskRunStartIn struct {
	Keyed
	OneTask
	Body struct {
		Mode   string  `json:"mode" enum:"continue,retry"`
		Prompt *string `json:"prompt,omitempty" minLength:"1" maxLength:"1048576" doc:"At most 1 MiB. What to do now: needed to continue; a retry has the task's."`
		Model  string  `json:"model,omitempty" maxLength:"128" doc:"The task's unless given."`
	}
}

func (a *API) taskRuns(ctx context.Context, in *taskRunsIn) (*answer[List[Run]], error) {
	row, err := a.task(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	from, err := in.from("task_run")
	if err != nil {
		return nil, err
	}
	rows, err := a.DB.Read().RunPageOfTask(ctx, read.RunPageOfTaskParams{TaskID: &row.Task.ID, Attempt: from.n, Lim: int32(in.Limit + 1)})
	if err != nil {
		return nil, fmt.Errorf("runs of task %s: %w", row.Task.ID, err)
	}
	return page("task_run", in.Limit, rows, showRun, func(r read.Run) place { return place{at: r.QueuedAt, n: r.Attempt} }), nil
}

func (a *API) startTaskRun(ctx context.Context, in *taskRunStartIn) (*answer[TaskRunStarted], error) {
	row, err := a.task(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	command, err := in.command(row.Task, id)
	if err != nil {
		return nil, err
	}
	result, err := a.execute(ctx, command, in.IdempotencyKey, in)
	started, err := decoded[task.Answer](result, err)
	if err != nil {
		return nil, err
	}
	version, err := a.version(ctx, task.Stream(row.Task.ID, row.Task.SpaceID), result)
	if err != nil {
		return nil, err
	}
	made, err := a.run(ctx, started.Run)
	if err != nil {
		return nil, err
	}
	return reply(TaskRunStarted{Run: made.ID, Attempt: made.Attempt, Version: version}), nil
}

// command is what the mode asks for.
func (in *taskRunStartIn) command(t read.Task, id event.ID) (event.Command, error) {
	switch {
	case in.Body.Mode == modeRetry && in.Body.Prompt != nil:
		return nil, fault.Field("prompt", "a retry has the task's own prompt: leave it out, or continue")
	case in.Body.Mode == modeRetry:
		return task.Retry{Task: t.ID, Space: t.SpaceID, Agent: t.AgentID, Run: id, Model: in.Body.Model}, nil
	case in.Body.Prompt == nil:
		return nil, fault.Field("prompt", "to continue needs a prompt that says what to do now: give one, or retry")
	}
	return task.Continue{Task: t.ID, Space: t.SpaceID, Agent: t.AgentID, Run: id, Prompt: *in.Body.Prompt, Model: in.Body.Model}, nil
}
