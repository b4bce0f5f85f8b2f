package run

import (
	"encoding/json"

	"cairn/domain/event"
)

// Target names the run that a command is about, by the conversation or the task that it belongs to.
type Target struct {
	Run          event.ID `json:"run"`
	Space        event.ID `json:"space"`
	Conversation event.ID `json:"conversation"` // zero for the run of a task
	Task         event.ID `json:"task"`         // zero for the run of a conversation
}

// TargetOf names a run by its stream and its state, which knows what the run belongs to.
func TargetOf(stream event.Ref, s State) Target {
	if s.Task.IsZero() {
		return Target{Run: stream.ID, Space: stream.Space, Conversation: stream.Topic}
	}
	return Target{Run: stream.ID, Space: stream.Space, Task: stream.Topic}
}

// Topic is the conversation or the task.
func (t Target) Topic() event.ID {
	if t.Task.IsZero() {
		return t.Conversation
	}
	return t.Task
}

// Stream is the run's stream.
func (t Target) Stream() event.Ref { return Stream(t.Run, t.Space, t.Topic()) }

// Streams implements event.Command.
func (t Target) Streams() []event.Ref { return []event.Ref{t.Stream()} }

// Answer implements event.Command.
func (t Target) Answer() any { return Answer{Run: t.Run} }

func (t Target) change(e event.Event) []event.Change {
	return []event.Change{{Stream: t.Stream(), Events: []event.Event{e}}}
}

// Answer names the run that a command was about.
type Answer struct {
	Run event.ID `json:"run_id"`
}

// Start claims a queued run whose turn has started, or which is its task's active attempt, for the worker that asks.
type Start struct {
	Target
	Worker string `json:"worker"` // the actor's own name, unless the system acts
	Host   string `json:"host"`
	Epoch  int64  `json:"epoch"` // the one to claim, last + 1; 0: whichever comes next
}

// Name implements event.Command.
func (Start) Name() string { return "run.start" }

// Streams implements event.Command.
func (c Start) Streams() []event.Ref { return []event.Ref{c.Stream(), c.owner()} }

// owner is the stream of the conversation or the task. Their packages import this one, so that only their
// names are known here.
func (c Start) owner() event.Ref {
	kind := "conversation"
	if !c.Task.IsZero() {
		kind = "task"
	}
	return event.Ref{Kind: kind, ID: c.Topic(), Space: c.Space, Topic: c.Topic()}
}

// RecordSandbox says where the run executes under this epoch; once per epoch.
type RecordSandbox struct {
	Target
	Epoch      int64           `json:"epoch"`
	Host       string          `json:"host"`
	Backend    string          `json:"backend"`
	Cgroup     string          `json:"cgroup"`
	Upper      string          `json:"upper"`
	Reattached bool            `json:"reattached"`
	Report     json.RawMessage `json:"report"`
	Grade      *string         `json:"grade"`
	DurationUS int64           `json:"duration_us"`
}

// Name implements event.Command.
func (RecordSandbox) Name() string { return "run.record_sandbox" }

// RecordEgress says what the sandbox of this epoch asked for outside.
type RecordEgress struct {
	Target
	Epoch     int64        `json:"epoch"`
	Decisions []EgressWish `json:"decisions"`
	Allowed   int64        `json:"allowed"`
	Refused   int64        `json:"refused"`
	Unlisted  int64        `json:"unlisted"`
}

// EgressWish is what was asked for and decided.
type EgressWish struct {
	Allowed bool    `json:"allowed"`
	Rule    string  `json:"rule"`
	Reason  string  `json:"reason"`
	Host    string  `json:"host"`
	Port    int     `json:"port"`
	Method  string  `json:"method"`
	Path    *string `json:"path"` // null: not seen
	Count   int64   `json:"count"`
}

// Name implements event.Command.
func (RecordEgress) Name() string { return "run.record_egress" }

// RecordLimit says that a bound of the sandbox was reached.
type RecordLimit struct {
	Target
	Epoch    int64   `json:"epoch"`
	Call     *string `json:"call"`
	Limit    string  `json:"limit"`
	Count    int64   `json:"count"`
	Allowed  int64   `json:"allowed"`
	Measured *int64  `json:"measured"`
	By       string  `json:"by"`
}

// Name implements event.Command.
func (RecordLimit) Name() string { return "run.record_limit" }

// CloseSandbox says what the sandbox of this epoch used; once per epoch.
type CloseSandbox struct {
	Target
	Epoch      int64        `json:"epoch"`
	Usage      SandboxUsage `json:"usage"`
	Unknown    []Unknown    `json:"unknown"`
	OverLimit  *string      `json:"over_limit"`
	WallUS     int64        `json:"wall_us"`
	DurationUS int64        `json:"duration_us"`
}

// Name implements event.Command.
func (CloseSandbox) Name() string { return "run.close_sandbox" }

// RecordAnswer records a whole answer of the model.
type RecordAnswer struct {
	Target
	Epoch        int64      `json:"epoch"`
	Step         int64      `json:"step"` // number of steps so far + 1
	Model        string     `json:"model"`
	Text         string     `json:"text"`
	Calls        []CallWish `json:"calls"`
	Usage        Usage      `json:"usage"`
	Finish       string     `json:"finish"`
	FirstTokenUS *int64     `json:"first_token_us"`
	DurationUS   int64      `json:"duration_us"`
}

// CallWish is a tool call as the model asked for it. The caller makes the id unique inside the run.
type CallWish struct {
	ID        string `json:"id"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
}

// Name implements event.Command.
func (RecordAnswer) Name() string { return "run.record_answer" }

// CallTool says that a tool is about to act.
type CallTool struct {
	Target
	Epoch int64  `json:"epoch"`
	Call  string `json:"call"`
	Again bool   `json:"again"` // a read-only call in doubt is made once more
}

// Name implements event.Command.
func (CallTool) Name() string { return "run.call_tool" }

// ReturnTool says what a call came to.
type ReturnTool struct {
	Target
	Epoch       int64  `json:"epoch"`
	Call        string `json:"call"`
	Outcome     string `json:"outcome"`
	ExitCode    *int   `json:"exit_code"`
	Output      string `json:"output"`
	OutputBytes int64  `json:"output_bytes"` // before truncation
	Truncated   bool   `json:"truncated"`
	DurationUS  int64  `json:"duration_us"`
}

// Name implements event.Command.
func (ReturnTool) Name() string { return "run.return_tool" }

// Release hands the run back, so that another worker goes on with it.
type Release struct {
	Target
	Epoch int64 `json:"epoch"`
}

// Name implements event.Command.
func (Release) Name() string { return "run.release" }

// LoseWorker takes the claim back from a worker whose lease ran out.
type LoseWorker struct {
	Target
	Epoch  int64  `json:"epoch"`
	Worker string `json:"worker"`
}

// Name implements event.Command.
func (LoseWorker) Name() string { return "run.lose_worker" }
