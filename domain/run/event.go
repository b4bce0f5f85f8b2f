package run

import (
	"encoding/json"
	"time"

	"cairn/domain/agent"
	"cairn/domain/egress"
	"cairn/domain/event"
)

// Queued says that the run exists, with everything pinned that it needs.
type Queued struct {
	Conversation event.ID     `json:"conversation,omitzero"` // left out for the run of a task
	Turn         event.ID     `json:"turn,omitzero"`         // left out for the run of a task
	Task         event.ID     `json:"task,omitzero"`         // the task that the run belongs to; left out for the run of a conversation
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
	Attempt      int64        `json:"attempt,omitzero"`   // 1, 2, ...; left out means 1
	RetryOf      event.ID     `json:"retry_of,omitzero"`  // the run that this one repeats; left out when it repeats none
	Continues    event.ID     `json:"continues,omitzero"` // the run whose files and transcript this one goes on from; left out when it is not of a task, or begins at the source

	Egress      *egress.Policy `json:"egress,omitzero"`       // of the agent's revision; absent: what the space says
	SpaceEgress *egress.Policy `json:"space_egress,omitzero"` // of the space at that time; absent: no bound
}

// AttemptNumber is which attempt it is.
func (e Queued) AttemptNumber() int64 { return max(e.Attempt, 1) }

// Kind implements event.Event.
func (Queued) Kind() string { return "run.queued" }

// Started says that a worker claimed the run under a new epoch.
type Started struct {
	Epoch    int64     `json:"epoch"` // 1, 2, ...
	Worker   string    `json:"worker"`
	Host     string    `json:"host"`
	Deadline time.Time `json:"deadline"` // RFC 3339, UTC: first claim plus limits.wall_seconds, the same for every epoch
}

// Kind implements event.Event.
func (Started) Kind() string { return "run.started" }

// SandboxPrepared says where the run's files and processes are, and what bounds them.
type SandboxPrepared struct {
	Epoch      int64           `json:"epoch"`
	Host       string          `json:"host"`
	Backend    string          `json:"backend"`
	Cgroup     string          `json:"cgroup"`
	Upper      string          `json:"upper"`      // path of the workspace's upper layer on that host
	Reattached bool            `json:"reattached"` // the upper layer of an earlier epoch was taken over
	Report     json.RawMessage `json:"report"`     // the boundary report of the sandbox
	Grade      *string         `json:"grade"`      // null: not known
	DurationUS int64           `json:"duration_us"`
}

// Kind implements event.Event.
func (SandboxPrepared) Kind() string { return "run.sandbox_prepared" }

// EgressDecided says what the sandbox asked for outside, and what was let through, since the last such event of
// this epoch. A worker that is lost takes what it had not recorded with it.
type EgressDecided struct {
	Epoch     int64            `json:"epoch"`
	Decisions []EgressDecision `json:"decisions"` // different ones, at most 100
	Allowed   int64            `json:"allowed"`   // requests
	Refused   int64            `json:"refused"`   // requests
	Unlisted  int64            `json:"unlisted"`  // requests counted in allowed or refused but in none of the decisions
}

// Kind implements event.Event.
func (EgressDecided) Kind() string { return "run.egress_decided" }

// EgressDecision is one decision over equal requests.
type EgressDecision struct {
	Allowed bool         `json:"allowed"` // let through
	Rule    string       `json:"rule"`    // tier and host of the rule that allowed it; empty when refused
	Reason  string       `json:"reason"`  // of the refusal, as a code; empty when allowed
	Target  event.Sealed `json:"target"`  // host as it was asked for
	Port    int          `json:"port"`    // 0: unknown
	Method  string       `json:"method"`  // CONNECT for a tunnel, or for a connection that was refused
	Path    event.Sealed `json:"path"`    // without the query, cut at 256 bytes; null: not seen
	Count   int64        `json:"count"`   // requests
}

// LimitReached says that a bound of the sandbox was reached: a call went on without what was refused, or the
// watchdog ended the sandbox.
type LimitReached struct {
	Epoch    int64   `json:"epoch"`
	Call     *string `json:"call"`     // the tool call during which it was seen; null: none alone
	Limit    string  `json:"limit"`    // memory, pids, disk, inodes, volume, depth, output, time or wall
	Count    int64   `json:"count"`    // how often since the last such event
	Allowed  int64   `json:"allowed"`  // bytes, processes, files, levels or nanoseconds
	Measured *int64  `json:"measured"` // in the same unit, overshoot included; null: the kernel does not tell
	By       string  `json:"by"`       // kernel, watchdog or worker
}

// Kind implements event.Event.
func (LimitReached) Kind() string { return "run.limit_reached" }

// SandboxClosed says what the sandbox of this epoch used, all processes in it together. A number is null where
// the kernel does not tell it; unknown says why.
type SandboxClosed struct {
	Epoch      int64        `json:"epoch"`
	Host       string       `json:"host"`
	Usage      SandboxUsage `json:"usage"`       // what all processes used together
	Unknown    []Unknown    `json:"unknown"`     // fields of usage that are null
	OverLimit  *string      `json:"over_limit"`  // the limit for which the watchdog ended it; null: for none
	WallUS     int64        `json:"wall_us"`     // from its preparation to its end, microseconds
	DurationUS int64        `json:"duration_us"` // that closing it took, microseconds
}

// Kind implements event.Event.
func (SandboxClosed) Kind() string { return "run.sandbox_closed" }

// SandboxUsage counts what a sandbox used; null is unknown, 0 is none.
type SandboxUsage struct {
	CPUUS           *int64 `json:"cpu_us"`            // user and system, microseconds
	PeakMemoryBytes *int64 `json:"peak_memory_bytes"` // programs, hand and memory file systems together
	MemoryKills     *int64 `json:"memory_kills"`      // processes that the kernel ended for want of memory
	ForksDenied     *int64 `json:"forks_denied"`      // for the limit of processes
	DiskBytes       *int64 `json:"disk_bytes"`        // of the upper layer at the end
	DiskInodes      *int64 `json:"disk_inodes"`       // files and folders of the upper layer at the end
}

// Unknown is a number that could not be had.
type Unknown struct {
	Field  string `json:"field"`  // name of the field of usage
	Reason string `json:"reason"` // why it is null
}

// ModelAnswered is one whole answer of the model.
type ModelAnswered struct {
	Epoch        int64        `json:"epoch"`
	Step         int64        `json:"step"` // 1, 2, ...
	Model        string       `json:"model"`
	Text         event.Sealed `json:"text"`
	Calls        []AskedCall  `json:"calls"`
	Usage        Usage        `json:"usage"`
	Finish       string       `json:"finish"`         // why the model stopped, as the gateway names it
	FirstTokenUS *int64       `json:"first_token_us"` // null: not known
	DurationUS   int64        `json:"duration_us"`
}

// Kind implements event.Event.
func (ModelAnswered) Kind() string { return "run.model_answered" }

// AskedCall is one tool call that the model asks for.
type AskedCall struct {
	ID        string       `json:"id"` // unique inside the run
	Tool      string       `json:"tool"`
	Arguments event.Sealed `json:"arguments"`
}

// Usage counts tokens; null is unknown, 0 is none.
type Usage struct {
	InputTokens  *int64 `json:"input_tokens"`
	OutputTokens *int64 `json:"output_tokens"`
}

// ToolCalled is recorded before the tool acts.
type ToolCalled struct {
	Epoch int64  `json:"epoch"`
	Step  int64  `json:"step"`
	Call  string `json:"call"`
	Tool  string `json:"tool"`
}

// Kind implements event.Event.
func (ToolCalled) Kind() string { return "run.tool_called" }

// ToolReturned is recorded after the tool acted, or in its stead when it must not or nobody knows.
type ToolReturned struct {
	Epoch       int64        `json:"epoch"`
	Call        string       `json:"call"`
	Tool        string       `json:"tool"`
	Outcome     string       `json:"outcome"`   // "ok", "error", "timeout", "cancelled" or "in_doubt"
	ExitCode    *int         `json:"exit_code"` // null: the tool has none, or it is unknown
	Output      event.Sealed `json:"output"`
	OutputBytes int64        `json:"output_bytes"` // before truncation
	Truncated   bool         `json:"truncated"`
	DurationUS  int64        `json:"duration_us"`
}

// Kind implements event.Event.
func (ToolReturned) Kind() string { return "run.tool_returned" }

// CancelRequested says that the worker that holds the run is to end it.
type CancelRequested struct {
	Reason string `json:"reason"` // a code: "requested" by a person, "system" by the installation
}

// Kind implements event.Event.
func (CancelRequested) Kind() string { return "run.cancel_requested" }

// ChangesRecorded says what the run did to the files of its workspace. It comes before the end of every run that had
// a sandbox, unless nobody could look at the files.
type ChangesRecorded struct {
	Epoch      int64          `json:"epoch"`
	Totals     ChangeTotals   `json:"totals"`    // numbers of paths by the kind of their change, and of lines
	Items      *event.Content `json:"items"`     // the list of changes, JSON; null when nothing changed
	Diffs      *event.Content `json:"diffs"`     // unified diffs of text files, one after the other; null when there are none
	Truncated  bool           `json:"truncated"` // there is more than what is kept
	DurationUS int64          `json:"duration_us"`
}

// Kind implements event.Event.
func (ChangesRecorded) Kind() string { return "run.changes_recorded" }

// WorkerLost says that the claim was taken back and the run waits for another worker.
type WorkerLost struct {
	Epoch  int64    `json:"epoch"` // the lost one
	Worker string   `json:"worker"`
	Queue  string   `json:"queue"`
	Task   event.ID `json:"task,omitzero"` // of a task's run
}

// Kind implements event.Event.
func (WorkerLost) Kind() string { return "run.worker_lost" }

// Released says that a draining worker handed the run back.
type Released struct {
	Epoch  int64    `json:"epoch"`
	Worker string   `json:"worker"`
	Queue  string   `json:"queue"`
	Task   event.ID `json:"task,omitzero"` // of a task's run
}

// Kind implements event.Event.
func (Released) Kind() string { return "run.released" }

// Succeeded ends the run with an answer.
type Succeeded struct {
	Epoch  int64        `json:"epoch"`
	Answer event.Sealed `json:"answer"`
}

// Kind implements event.Event.
func (Succeeded) Kind() string { return "run.succeeded" }

// Failed ends the run with a reason.
type Failed struct {
	Epoch   int64        `json:"epoch"`
	Code    string       `json:"code"`
	Message event.Sealed `json:"message"` // null: the code says all, or the key is gone
}

// Kind implements event.Event.
func (Failed) Kind() string { return "run.failed" }

// Cancelled ends the run because somebody asked for it.
type Cancelled struct {
	Epoch int64 `json:"epoch"` // 0: it was never claimed
}

// Kind implements event.Event.
func (Cancelled) Kind() string { return "run.cancelled" }
