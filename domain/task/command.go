package task

import (
	"cairn/domain/agent"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
)

// Open makes a task and its first attempt. Everyone who works in the space may.
type Open struct {
	Task   event.ID    `json:"task"` // new
	Space  event.ID    `json:"space"`
	Agent  event.ID    `json:"agent"`
	Run    event.ID    `json:"run"` // new
	Title  string      `json:"title"`
	Prompt string      `json:"prompt"` // 1 byte to 1 MiB
	Model  string      `json:"model"`  // empty: the agent's as it is now
	Source run.Source  `json:"source"`
	Mounts []run.Mount `json:"mounts"`
	Queue  string      `json:"queue"` // empty: run.DefaultQueue
}

// Name implements event.Command.
func (Open) Name() string { return "task.open" }

// Streams implements event.Command.
func (c Open) Streams() []event.Ref { return doerStreams(c.Task, c.Space, c.Run, c.Agent) }

// Answer implements event.Command.
func (c Open) Answer() any { return Answer{Task: c.Task, Run: c.Run} }

// Continue starts an attempt that goes on from the newest run, which must have ended. Everyone who works in
// the space may.
type Continue struct {
	Task   event.ID `json:"task"`
	Space  event.ID `json:"space"`
	Agent  event.ID `json:"agent"`  // of the task; its newest revision is pinned on the run
	Run    event.ID `json:"run"`    // new
	Prompt string   `json:"prompt"` // 1 byte to 1 MiB
	Model  string   `json:"model"`  // empty: the task's
}

// Name implements event.Command.
func (Continue) Name() string { return "task.continue" }

// Streams implements event.Command.
func (c Continue) Streams() []event.Ref { return doerStreams(c.Task, c.Space, c.Run, c.Agent) }

// Answer implements event.Command.
func (c Continue) Answer() any { return Answer{Task: c.Task, Run: c.Run} }

// Retry starts an attempt that repeats the task from its source, or one of its runs from where that one
// started. Everyone who works in the space may.
type Retry struct {
	Task  event.ID `json:"task"`
	Space event.ID `json:"space"`
	Agent event.ID `json:"agent"` // of the task; its newest revision is pinned on the run
	Run   event.ID `json:"run"`   // new
	Of    event.ID `json:"of"`    // the run that is repeated; zero: the task itself
	Model string   `json:"model"` // empty: that of the repeated run, or the task's
}

// Name implements event.Command.
func (Retry) Name() string { return "task.retry" }

// Streams implements event.Command.
func (c Retry) Streams() []event.Ref {
	streams := doerStreams(c.Task, c.Space, c.Run, c.Agent)
	if !c.Of.IsZero() {
		streams = append(streams, run.Stream(c.Of, c.Space, c.Task))
	}
	return streams
}

// Answer implements event.Command.
func (c Retry) Answer() any { return Answer{Task: c.Task, Run: c.Run} }

// EndRun ends the active attempt with its run. The worker that holds the run does it.
type EndRun struct {
	Task  event.ID   `json:"task"`
	Space event.ID   `json:"space"`
	Run   event.ID   `json:"run"`
	End   run.Ending `json:"end"`
}

// Name implements event.Command.
func (EndRun) Name() string { return "task.end_run" }

// Streams implements event.Command.
func (c EndRun) Streams() []event.Ref {
	return []event.Ref{Stream(c.Task, c.Space), run.Stream(c.Run, c.Space, c.Task)}
}

// Answer implements event.Command.
func (c EndRun) Answer() any { return run.Answer{Run: c.Run} }

// CancelRun ends a run that nobody holds, or asks the worker that holds it to end it. Everyone who works in
// the space may.
type CancelRun struct {
	Task  event.ID `json:"task"`
	Space event.ID `json:"space"`
	Run   event.ID `json:"run"`
}

// Name implements event.Command.
func (CancelRun) Name() string { return "task.cancel_run" }

// Streams implements event.Command.
func (c CancelRun) Streams() []event.Ref {
	return []event.Ref{Stream(c.Task, c.Space), run.Stream(c.Run, c.Space, c.Task), space.Stream(c.Space)}
}

// Answer implements event.Command.
func (c CancelRun) Answer() any { return run.Answer{Run: c.Run} }

// Answer names the task and the run that a command started.
type Answer struct {
	Task event.ID `json:"task_id"`
	Run  event.ID `json:"run_id"`
}

func doerStreams(task, in, newRun, worker event.ID) []event.Ref {
	return []event.Ref{Stream(task, in), run.Stream(newRun, in, task), space.Stream(in), agent.Stream(worker, in)}
}
