package task

import (
	"cairn/domain/agent"
	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
	"cairn/domain/space"
)

const maxTitle = 400

// Decide implements event.Command.
func (c Open) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if err := requireDoer(view, c.Space, meta); err != nil {
		return nil, err
	}
	if c.Queue == "" {
		c.Queue = run.DefaultQueue
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	worker, err := agent.Require(view, c.Agent, c.Space)
	if err != nil {
		return nil, err
	}
	if event.StateOf[State](view, Stream(c.Task, c.Space)).Opened {
		return nil, fault.New(fault.Conflict, "task_exists", "task %s exists: use a new id", c.Task)
	}
	if c.Model == "" {
		c.Model = worker.Model
	}
	opened := Opened{
		Agent: c.Agent, Title: event.Seal(c.Title), Prompt: event.Seal(c.Prompt), Model: c.Model,
		Source: c.Source, Mounts: append([]run.Mount{}, c.Mounts...), Queue: c.Queue,
	}
	first := attempt{task: c.Task, space: c.Space, run: c.Run, prompt: c.Prompt, model: c.Model}
	return first.start(view, Evolve(State{}, opened), opened)
}

func (c Open) check() error {
	err := check.First(check.ID("task", c.Task), check.ID("run", c.Run), check.Line("title", c.Title, 1, maxTitle),
		check.Text("prompt", c.Prompt, 1, check.MaxContent), run.CheckSource("source", c.Source),
		run.CheckMounts("mounts", c.Mounts), check.Code("queue", c.Queue))
	if err != nil {
		return err
	}
	return checkModel(c.Model)
}

func checkModel(model string) error {
	if model == "" {
		return nil
	}
	return agent.CheckModel("model", model)
}

func requireDoer(view event.View, id event.ID, meta event.Meta) error {
	return space.Require(event.StateOf[space.State](view, space.Stream(id)), meta.Actor, space.Doers...)
}

// requireIdle answers a task that exists, has the agent and no active attempt.
func requireIdle(view event.View, id, in, worker event.ID) (State, error) {
	state := event.StateOf[State](view, Stream(id, in))
	switch {
	case !state.Opened:
		return state, notFound(id)
	case worker != state.Agent:
		return state, fault.Field("agent", "%s is not the agent of the task, %s is: read the task again", worker, state.Agent)
	case !state.Idle():
		return state, run.Active(state.Active)
	}
	return state, nil
}

func notFound(id event.ID) error {
	return fault.New(fault.NotFound, "task_not_found", "task %s does not exist in this space: check its id", id)
}

// Decide implements event.Command.
func (c Continue) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if err := requireDoer(view, c.Space, meta); err != nil {
		return nil, err
	}
	err := check.First(check.ID("run", c.Run), check.Text("prompt", c.Prompt, 1, check.MaxContent), checkModel(c.Model))
	if err != nil {
		return nil, err
	}
	state, err := requireIdle(view, c.Task, c.Space, c.Agent)
	if err != nil {
		return nil, err
	}
	return attempt{task: c.Task, space: c.Space, run: c.Run, prompt: c.Prompt, model: c.Model, continues: state.Last}.start(view, state)
}

// Decide implements event.Command.
func (c Retry) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if err := requireDoer(view, c.Space, meta); err != nil {
		return nil, err
	}
	if err := check.First(check.ID("run", c.Run), checkModel(c.Model)); err != nil {
		return nil, err
	}
	state, err := requireIdle(view, c.Task, c.Space, c.Agent)
	if err != nil {
		return nil, err
	}
	again := attempt{task: c.Task, space: c.Space, run: c.Run, prompt: state.Prompt.Text(), model: c.Model, retryOf: state.Last}
	if c.Of.IsZero() {
		err = check.Readable("the task's prompt", "open a new task", state.Prompt)
	} else {
		of := event.StateOf[run.State](view, run.Stream(c.Of, c.Space, c.Task))
		err = of.RequireEnded(c.Of)
		again.prompt, again.continues, again.retryOf = of.Prompt.Text(), of.Continues, c.Of
		if c.Model == "" {
			again.model = of.Model
		}
	}
	if err != nil {
		return nil, err
	}
	return again.start(view, state)
}

// attempt is one that is to start.
type attempt struct {
	task, space, run, retryOf, continues event.ID
	prompt, model                        string // an empty model is the task's
}

// start queues the run of an attempt and makes it the active one, after the events that lead to it.
func (a attempt) start(view event.View, state State, before ...event.Event) ([]event.Change, error) {
	stream := run.Stream(a.run, a.space, a.task)
	if event.StateOf[run.State](view, stream).Status != "" {
		return nil, fault.New(fault.Conflict, "run_exists", "run %s exists: use a new id for every attempt", a.run)
	}
	worker, err := agent.Require(view, state.Agent, a.space)
	if err != nil {
		return nil, err
	}
	if a.model == "" {
		a.model = state.Model
	}
	queued, err := run.Pin(state.Agent, worker, a.model, a.prompt)
	if err != nil {
		return nil, err
	}
	queued.Task, queued.Attempt, queued.RetryOf, queued.Continues = a.task, state.Attempts+1, a.retryOf, a.continues
	queued.Source, queued.Mounts, queued.Queue = state.Source.Copied(), append([]run.Mount{}, state.Mounts...), state.Queue
	started := AttemptStarted{Run: a.run, Attempt: queued.Attempt, RetryOf: a.retryOf, Continues: a.continues, Queue: state.Queue}
	return []event.Change{
		{Stream: Stream(a.task, a.space), Events: append(before, started)},
		{Stream: stream, Events: []event.Event{queued}},
	}, nil
}
