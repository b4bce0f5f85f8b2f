package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"cairn/db/read"
	"cairn/domain/event"
	"cairn/domain/task"
)

// TaskSummary is a task in a list.
type TaskSummary struct {
	ID        event.ID  `json:"task_id" format:"uuid"`
	Space     event.ID  `json:"space_id" format:"uuid"`
	Agent     event.ID  `json:"agent_id" format:"uuid"`
	Title     *string   `json:"title"`
	Model     string    `json:"model" doc:"Of the attempts that name none."`
	Source    Source    `json:"source" doc:"What the workspace of its first attempt begins with, as pinned."`
	State     string    `json:"state" enum:"queued,starting,running,succeeded,failed,cancelled" doc:"Of the newest run."`
	Runs      int64     `json:"runs" doc:"How many attempts there are."`
	ActiveRun *event.ID `json:"active_run_id" format:"uuid" doc:"null while no attempt is active."`
	LastRun   *event.ID `json:"last_run_id" format:"uuid" doc:"Of the newest attempt."`
	OpenedBy  string    `json:"opened_by" doc:"The actor, like account/ID."`
	OpenedAt  time.Time `json:"opened_at"`
	ChangedAt time.Time `json:"changed_at" doc:"When an attempt last started or ended."`
	Version   int64     `json:"version"`
}

// Task is a piece of work that is given to an agent and runs as attempts.
type Task struct {
	TaskSummary
	Prompt *string `json:"prompt"`
}

// TaskOpened names a new task and its first run.
type TaskOpened struct {
	Task    event.ID `json:"task_id" format:"uuid"`
	Run     event.ID `json:"run_id" format:"uuid"`
	Version int64    `json:"version"`
}

// TaskRunStarted names a new attempt.
type TaskRunStarted struct {
	Run     event.ID `json:"run_id" format:"uuid"`
	Attempt int64    `json:"attempt"`
	Version int64    `json:"version" doc:"Of the task."`
}

// OneTask is the path of one.
type OneTask struct {
	Task event.ID `path:"task" format:"uuid"`
}

type tasksIn struct {
	InSpace
	SearchIn
	State []string `query:"state" enum:"queued,starting,running,succeeded,failed,cancelled" maxItems:"6" doc:"Only those in one of these states, like queued,running."`
}

type taskOpenIn struct {
	Keyed
	Space event.ID `path:"space" format:"uuid"`
	Body  struct {
		Agent  event.ID  `json:"agent_id" format:"uuid" doc:"Of the same space."`
		Title  string    `json:"title" minLength:"1" maxLength:"400" doc:"One line, at most 400 bytes."`
		Prompt string    `json:"prompt" minLength:"1" maxLength:"1048576" doc:"At most 1 MiB."`
		Model  string    `json:"model,omitempty" maxLength:"128" doc:"The agent's unless given."`
		Source *SourceIn `json:"source,omitempty" doc:"Nothing unless given."`
	}
}

type taskCancelIn struct {
	Keyed
	OneTask
}

func (a *API) taskRoutes() {
	list := route("GET /spaces/{space}/tasks", "task-list", "Tasks of a space")
	list.Description = "The last changed first. One that changes while you page moves to the front."
	register(a, list, a.tasks)
	open := withStatus(route("POST /spaces/{space}/tasks", "task-open", "Give an agent a task"), http.StatusAccepted)
	open.Description = "Its first run is queued at once and begins with the source, as the files of the space are at this moment. Follow GET /runs/{run}/events."
	register(a, open, a.openTask)
	register(a, route("GET /tasks/{task}", "task-get", "A task"), a.getTask)
	register(a, route("GET /tasks/{task}/runs", "task-run-list", "Attempts at a task"), a.taskRuns)
	start := withStatus(route("POST /tasks/{task}/runs", "task-run-start", "Start another attempt"), http.StatusAccepted)
	start.Description = "continue: from the files and the transcript of the newest run, whatever it came to, with a prompt of its own; when those files cannot be reached any more, the run fails with workspace_lost. " +
		"retry: the task's prompt again, afresh from its source. 409 run_active while a run of the task has not ended."
	register(a, start, a.startTaskRun)
	registerCancel(a, route("POST /tasks/{task}/cancel", "task-cancel", "Cancel the active run of a task"), a.cancelTask)
}

func showTask(t read.Task, state string) TaskSummary {
	return TaskSummary{
		ID: t.ID, Space: t.SpaceID, Agent: t.AgentID, Title: t.Title, Model: t.Model, State: state,
		Source: Source{Kind: t.SourceKind, Folder: t.SourceFolder, Files: t.SourceFiles, Bytes: t.SourceBytes, Manifest: t.SourceManifest, Root: t.SourceRoot, Path: t.SourcePath},
		Runs:   t.Attempts, ActiveRun: t.ActiveRun, LastRun: t.LastRun,
		OpenedBy: t.OpenedBy, OpenedAt: t.OpenedAt.UTC(), ChangedAt: t.ChangedAt.UTC(), Version: t.Version,
	}
}

func (a *API) tasks(ctx context.Context, in *tasksIn) (*answer[List[TaskSummary]], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	from, err := in.from("task")
	if err != nil {
		return nil, err
	}
	title, err := in.title()
	if err != nil {
		return nil, err
	}
	rows, err := a.DB.Read().TaskPage(ctx, read.TaskPageParams{
		SpaceID: in.Space, At: from.at, ID: from.id, AgentID: in.agent(), Title: title, States: append([]string{}, in.State...), Lim: int32(in.Limit + 1),
	})
	if err != nil {
		return nil, fmt.Errorf("tasks of space %s: %w", in.Space, err)
	}
	show := func(r read.TaskPageRow) TaskSummary { return showTask(r.Task, r.State) }
	return page("task", in.Limit, rows, show, func(r read.TaskPageRow) place { return place{at: r.Task.ChangedAt, id: r.Task.ID} }), nil
}

func (a *API) openTask(ctx context.Context, in *taskOpenIn) (*answer[TaskOpened], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	source, err := a.source(ctx, in.Space, in.Body.Source)
	if err != nil {
		return nil, err
	}
	ids, err := newIDs(2)
	if err != nil {
		return nil, err
	}
	opened, err := decoded[task.Answer](a.execute(ctx, task.Open{
		Task: ids[0], Run: ids[1], Space: in.Space, Agent: in.Body.Agent, Title: in.Body.Title, Prompt: in.Body.Prompt, Model: in.Body.Model,
		Source: source,
	}, in.IdempotencyKey, in))
	if err != nil {
		return nil, err
	}
	return reply(TaskOpened{Task: opened.Task, Run: opened.Run, Version: 2}), nil // opened, and the first attempt started
}

func (a *API) getTask(ctx context.Context, in *OneTask) (*answer[Task], error) {
	row, err := a.task(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	folded, _, err := a.DB.Load(ctx, task.Stream(row.Task.ID, row.Task.SpaceID))
	if err != nil {
		return nil, err
	}
	state, _ := folded.(task.State)
	return reply(Task{TaskSummary: showTask(row.Task, row.State), Prompt: text(state.Prompt)}), nil
}

func (a *API) cancelTask(ctx context.Context, in *taskCancelIn) (*runCancelOut, error) {
	row, err := a.task(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	newest, err := a.run(ctx, idOf(row.Task.LastRun))
	if err != nil {
		return nil, err
	}
	return a.cancel(ctx, newest, in.IdempotencyKey, in)
}
