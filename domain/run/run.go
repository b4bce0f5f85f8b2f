// Package run is one attempt at a turn of a conversation, or at a task: the thing that executes. Its stream is the transcript of the
// agent loop, so that any worker can fold it and go on where another one stopped.
//
//	(none) --queued--> queued --started--> starting --sandbox_prepared | model_answered--> running
//	                     ^ |                  |                                              |
//	                     | +---------------------------------------------------------------> succeeded | failed | cancelled
//	                     +-- worker_lost, released --+----------------------------------------+
//
//	one call:  asked (model_answered) --tool_called--> called --tool_returned--> returned
//	           a call that was called under an older epoch and never returned is in doubt
//
// Before the end of a run that had a sandbox its worker records what became of the files: changes_recorded.
//
// A worker claims by run.started, which raises the epoch by one; whatever carries an older epoch is
// refused. Terminal states never change. The run's end is decided together with its turn, by
// conversation.EndTurn, so that the next turn starts in the same append; that of a task's run together with
// the attempt, by task.EndRun.
//
// It may import the standard library, domain/event, domain/fault, domain/check, domain/egress and domain/agent.
package run

import (
	"time"

	"cairn/domain/agent"
	"cairn/domain/egress"
	"cairn/domain/event"
)

// Kind is the stream kind.
const Kind = "run"

// DefaultQueue is where runs wait when their conversation or task names no queue.
const DefaultQueue = "default"

// Status is where a run is in its life. The empty status: the run does not exist.
type Status string

// The states of a run.
const (
	StatusQueued    Status = "queued"
	StatusStarting  Status = "starting"
	StatusRunning   Status = "running"
	StatusSucceeded Status = "succeeded"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// Terminal reports whether the run has ended.
func (s Status) Terminal() bool {
	return s == StatusSucceeded || s == StatusFailed || s == StatusCancelled
}

// Claimed reports whether a worker holds the run.
func (s Status) Claimed() bool { return s == StatusStarting || s == StatusRunning }

// State is the folded run.
type State struct {
	Status       Status       `json:"status"`
	Conversation event.ID     `json:"conversation"`
	Turn         event.ID     `json:"turn"`
	Task         event.ID     `json:"task"` // zero for the run of a conversation, which has Conversation and Turn
	Agent        event.ID     `json:"agent"`
	Revision     int64        `json:"revision"`
	Model        string       `json:"model"`
	Prompt       event.Sealed `json:"prompt"`
	Instructions event.Sealed `json:"instructions"`
	Tools        []string     `json:"tools"`
	Limits       agent.Limits `json:"limits"`
	Source       Source       `json:"source"`
	Mounts       []Mount      `json:"mounts"`
	Queue        string       `json:"queue"`
	Attempt      int64        `json:"attempt"`   // 1, 2, ...
	RetryOf      event.ID     `json:"retry_of"`  // the run that it repeats; zero: none
	Continues    event.ID     `json:"continues"` // the run of the same task that it goes on from; zero: none

	Egress      *egress.Policy `json:"egress"`       // of the agent; null: what the space says
	SpaceEgress *egress.Policy `json:"space_egress"` // of the space; null: no bound

	Epoch    int64     `json:"epoch"`    // 0 before the first claim
	Worker   string    `json:"worker"`   // who holds it; empty while nobody does
	Host     string    `json:"host"`     // where the worker that holds it is
	Deadline time.Time `json:"deadline"` // first claim plus limits.wall_seconds; zero before it

	Sandbox         Sandbox `json:"sandbox"` // the newest one that was recorded
	Steps           []Step  `json:"steps"`
	CancelRequested bool    `json:"cancel_requested"`
	ChangesEpoch    int64   `json:"changes_epoch"` // under which its changes were recorded last; 0: never

	Answer  event.Sealed `json:"answer"`  // of a succeeded run
	Code    string       `json:"code"`    // of a failed run
	Message event.Sealed `json:"message"` // of a failed run
}

// Sandbox is where the run's files and processes are, or were under an earlier epoch.
type Sandbox struct {
	Epoch   int64  `json:"epoch"` // under which it was prepared; 0: never
	Host    string `json:"host"`
	Backend string `json:"backend"`
	Cgroup  string `json:"cgroup"`
	Upper   string `json:"upper"` // the upper layer of the workspace, on that host
	Closed  bool   `json:"closed"`
}

// Step is one answer of the model and what became of its calls.
type Step struct {
	Text   event.Sealed `json:"text"`
	Finish string       `json:"finish"`
	Calls  []Call       `json:"calls"`
}

// CallState is where a call is in its life.
type CallState string

// The states of a call.
const (
	Asked    CallState = "asked"
	Called   CallState = "called"
	Returned CallState = "returned"
)

// Call is one tool call that the model asked for.
type Call struct {
	ID          string       `json:"id"` // unique inside the run
	Tool        string       `json:"tool"`
	Arguments   event.Sealed `json:"arguments"`
	State       CallState    `json:"state"`
	CalledEpoch int64        `json:"called_epoch"` // 0: never called
	Result      Result       `json:"result"`       // once returned
}

// Result is what a call returned.
type Result struct {
	Outcome     string       `json:"outcome"`
	ExitCode    *int         `json:"exit_code"` // null: the tool has none, or it is unknown
	Output      event.Sealed `json:"output"`
	OutputBytes int64        `json:"output_bytes"` // before truncation
	Truncated   bool         `json:"truncated"`
}

// Stream names a run. Its topic is the conversation or the task that it belongs to.
func Stream(id, space, topic event.ID) event.Ref {
	return event.Ref{Kind: Kind, ID: id, Space: space, Topic: topic}
}

// Aggregate describes the noun to the registry.
func Aggregate() event.Aggregate {
	return event.Aggregate{
		Kind: Kind,
		Events: []event.Definition{
			event.Define[Queued](), event.Define[Started](), event.Define[SandboxPrepared](),
			event.Define[EgressDecided](), event.Define[LimitReached](), event.Define[SandboxClosed](),
			event.Define[ModelAnswered](), event.Define[ToolCalled](), event.Define[ToolReturned](),
			event.Define[CancelRequested](), event.Define[ChangesRecorded](), event.Define[WorkerLost](), event.Define[Released](),
			event.Define[Succeeded](), event.Define[Failed](), event.Define[Cancelled](),
		},
		Initial: func() any { return State{} },
		Evolve:  func(state any, e event.Event) any { s, _ := state.(State); return Evolve(s, e) },
	}
}
