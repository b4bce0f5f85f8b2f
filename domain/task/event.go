package task

import (
	"cairn/domain/event"
	"cairn/domain/run"
)

// Opened says that a task exists.
type Opened struct {
	Agent  event.ID     `json:"agent"`
	Title  event.Sealed `json:"title"`  // for people
	Prompt event.Sealed `json:"prompt"` // what is to be done
	Model  string       `json:"model"`  // of the attempts that name none
	Source run.Source   `json:"source"`
	Mounts []run.Mount  `json:"mounts"`
	Queue  string       `json:"queue"`
}

// Kind implements event.Event.
func (Opened) Kind() string { return "task.opened" }

// AttemptStarted says that a new run works on the task and may be claimed.
type AttemptStarted struct {
	Run       event.ID `json:"run"`                // the run of the attempt
	Attempt   int64    `json:"attempt"`            // 1, 2, ...
	RetryOf   event.ID `json:"retry_of,omitzero"`  // the run that it repeats; left out when it repeats none
	Continues event.ID `json:"continues,omitzero"` // the run whose files and transcript it goes on from; left out when it begins at the source
	Queue     string   `json:"queue"`
}

// Kind implements event.Event.
func (AttemptStarted) Kind() string { return "task.attempt_started" }

// AttemptEnded says how the attempt's run ended.
type AttemptEnded struct {
	Run     event.ID   `json:"run"`     // the run of the attempt
	Outcome run.Status `json:"outcome"` // "succeeded", "failed" or "cancelled"
}

// Kind implements event.Event.
func (AttemptEnded) Kind() string { return "task.attempt_ended" }
