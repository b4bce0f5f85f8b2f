package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"cairn/db/read"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/task"
)

// Run is one attempt at a turn of a conversation, or at a task.
type Run struct {
	ID             event.ID   `json:"run_id" format:"uuid"`
	Space          event.ID   `json:"space_id" format:"uuid"`
	Conversation   *event.ID  `json:"conversation_id" format:"uuid" doc:"null for the run of a task."`
	Turn           *event.ID  `json:"turn_id" format:"uuid" doc:"null for the run of a task."`
	Task           *event.ID  `json:"task_id" format:"uuid" doc:"null for the run of a conversation."`
	Attempt        int64      `json:"attempt" doc:"1, 2, ... at the same task or message."`
	RetryOf        *event.ID  `json:"retry_of" format:"uuid" doc:"The run that it repeats."`
	Continues      *event.ID  `json:"continues" format:"uuid" doc:"The run of the same task whose files and transcript it goes on from; null: it begins at the source, or is of a conversation."`
	Agent          event.ID   `json:"agent_id" format:"uuid"`
	Model          string     `json:"model"`
	Source         Source     `json:"source" doc:"What the workspace of its conversation began with, as pinned."`
	State          string     `json:"state" enum:"queued,starting,running,succeeded,failed,cancelled"`
	Epoch          int64      `json:"epoch" doc:"How many workers have claimed it."`
	Steps          int64      `json:"steps" doc:"Answers of the model so far."`
	InputTokens    *int64     `json:"input_tokens" doc:"null: the provider did not say."`
	OutputTokens   *int64     `json:"output_tokens"`
	CancelAsked    bool       `json:"cancel_asked"`
	Answer         *string    `json:"answer" doc:"Once it has succeeded."`
	FailureCode    *string    `json:"failure_code"`
	FailureMessage *string    `json:"failure_message"`
	QueuedAt       time.Time  `json:"queued_at"`
	StartedAt      *time.Time `json:"started_at" doc:"The first claim."`
	EndedAt        *time.Time `json:"ended_at"`
	Version        int64      `json:"version"`
}

// RunCancelled says what has become of a run that is to end.
type RunCancelled struct {
	Run   event.ID `json:"run_id" format:"uuid"`
	State string   `json:"state" enum:"queued,starting,running,succeeded,failed,cancelled"`
}

// Boundary is what the sandbox of a run reports: what was asked, what was installed, what was observed.
type Boundary struct {
	Run    event.ID        `json:"run_id" format:"uuid"`
	Grade  *string         `json:"grade" doc:"From A to F, by what the worker observed; null until a sandbox was prepared, or unknown."`
	Report json.RawMessage `json:"report" doc:"null until a sandbox was prepared; in it null is unknown."`
	Egress Egress          `json:"egress"`
	Limits json.RawMessage `json:"limits" doc:"Every bound that was reached, oldest first, as in the event run.limit_reached."`
	Closed json.RawMessage `json:"closed" doc:"What the sandbox used, as in the event run.sandbox_closed; null until it was closed."`
}

// OneRun is the path of one.
type OneRun struct {
	Run event.ID `path:"run" format:"uuid"`
}

type runCancelIn struct {
	Keyed
	OneRun
}

type runCancelOut struct {
	Status int
	Body   RunCancelled
}

type runEventsIn struct {
	OneRun
	EventsIn
}

func (a *API) runRoutes() {
	register(a, route("GET /runs/{run}", "run-get", "A run"), a.getRun)
	events := route("GET /runs/{run}/events", "run-event-list", "Events of a run, in the order of the log")
	events.Errors = append(events.Errors, http.StatusConflict)
	register(a, events, a.runEvents)
	registerCancel(a, route("POST /runs/{run}/cancel", "run-cancel", "Cancel a run"), a.cancelRun)
	retry := withStatus(route("POST /runs/{run}/retry", "run-retry", "Repeat a run that has ended"), http.StatusAccepted)
	retry.Description = "The run of a conversation: its message is asked again, as a new message. The run of a task: a new attempt with its prompt that starts where it started, " +
		"from the source or, when it continued a run, from that run's files. Instructions, tools and limits are those of the agent as it is now. 409 run_active: that run, or another one of the task, has not ended."
	register(a, retry, a.retryRun)
	register(a, route("GET /runs/{run}/boundary", "run-boundary", "The boundary report of a run"), a.boundary)
}

// registerCancel is for routes that answer 200 or 202 with the same body.
func registerCancel[I any](a *API, op huma.Operation, handle func(context.Context, *I) (*runCancelOut, error)) {
	op = withStatus(op, http.StatusAccepted)
	op.Description = "200: it has ended. 202: the worker that holds it was asked to end it. 409: it had ended before."
	op.Responses = map[string]*huma.Response{}
	register(a, op, handle)
	op.Responses["200"] = op.Responses["202"]
}

func (a *API) getRun(ctx context.Context, in *OneRun) (*answer[Run], error) {
	row, err := a.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	return reply(showRun(row)), nil
}

func showRun(r read.Run) Run {
	return Run{
		ID: r.ID, Space: r.SpaceID, Conversation: r.ConversationID, Turn: r.TurnID, Task: r.TaskID,
		Attempt: r.Attempt, RetryOf: r.RetryOf, Continues: r.Continues, Agent: r.AgentID, Model: r.Model, State: r.State,
		Source: Source{Kind: r.SourceKind, Folder: r.SourceFolder, Files: r.SourceFiles, Bytes: r.SourceBytes, Manifest: r.SourceManifest, Root: r.SourceRoot, Path: r.SourcePath},
		Epoch:  r.Epoch, Steps: r.Steps, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, CancelAsked: r.CancelAsked, Answer: r.Answer,
		FailureCode: r.FailureCode, FailureMessage: r.FailureMessage, QueuedAt: r.QueuedAt.UTC(), StartedAt: utc(r.StartedAt), EndedAt: utc(r.EndedAt), Version: r.Version,
	}
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

func (a *API) runEvents(ctx context.Context, in *runEventsIn) (*answer[Events], error) {
	row, err := a.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	return a.events(ctx, in.EventsIn, nil, func(after int64, limit int) ([]event.Record, error) {
		return a.DB.StreamSince(ctx, row.ID, after, limit)
	})
}

func (a *API) cancelRun(ctx context.Context, in *runCancelIn) (*runCancelOut, error) {
	row, err := a.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	return a.cancel(ctx, row, in.IdempotencyKey, in)
}

// cancel is the way of every cancellation. The answer is about the run that the first request under the key met.
func (a *API) cancel(ctx context.Context, row read.Run, key string, in any) (*runCancelOut, error) {
	var command event.Command
	if row.TaskID != nil {
		command = task.CancelRun{Task: *row.TaskID, Space: row.SpaceID, Run: row.ID}
	} else {
		command = conversation.CancelRun{Conversation: idOf(row.ConversationID), Space: row.SpaceID, Run: row.ID}
	}
	cancelled, err := decoded[run.Answer](a.execute(ctx, command, key, in))
	if err != nil {
		return nil, err
	}
	if row, err = a.run(ctx, cancelled.Run); err != nil {
		return nil, err
	}
	status := http.StatusAccepted
	if run.Status(row.State).Terminal() {
		status = http.StatusOK
	}
	return &runCancelOut{Status: status, Body: RunCancelled{Run: row.ID, State: row.State}}, nil
}

func (a *API) boundary(ctx context.Context, in *OneRun) (*answer[Boundary], error) {
	row, err := a.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	b := Boundary{Run: row.ID, Report: orNull(row.SandboxReport), Limits: row.LimitsReached, Closed: orNull(row.SandboxUsage)}
	var judged struct {
		Grade *string `json:"grade"`
	}
	egress, err := a.egress(ctx, row)
	if err != nil {
		return nil, err
	}
	b.Egress = egress
	if err := json.Unmarshal(b.Report, &judged); err == nil { // a report of another form has no grade that is known
		b.Grade = judged.Grade
	}
	return reply(b), nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
