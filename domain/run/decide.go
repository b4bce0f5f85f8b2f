package run

import (
	"bytes"
	"encoding/json"
	"time"

	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
)

const maxReport = 256 << 10

// owner is what a claim needs to know of a conversation or a task.
type owner interface {
	TurnStarted(run event.ID) bool
}

// Decide implements event.Command.
func (c Start) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	name, isWorker := event.ActorWorker(meta.Actor)
	if meta.Actor != event.System && (!isWorker || name != c.Worker) {
		return nil, fault.New(fault.Denied, "run_start_denied", "%.80s cannot claim a run for worker %.80q: a worker claims for itself", meta.Actor, c.Worker)
	}
	if err := check.First(check.Name("worker", c.Worker, 128), check.Name("host", c.Host, 255)); err != nil {
		return nil, err
	}
	state := event.StateOf[State](view, c.Stream())
	if err := state.requireOpen(); err != nil {
		return nil, err
	}
	if state.Status != StatusQueued {
		return nil, fault.New(fault.Conflict, "run_claimed", "the run is held by worker %q under epoch %d: leave it", state.Worker, state.Epoch)
	}
	if o, ok := view.State(c.owner()).(owner); !ok || !o.TurnStarted(c.Run) {
		return nil, fault.New(fault.Conflict, "turn_not_started", "the run's turn has not started: an earlier run of its conversation or task is still active")
	}
	if c.Epoch != 0 && c.Epoch != state.Epoch+1 {
		return nil, fault.New(fault.Conflict, "run_fenced", "epoch %d cannot be claimed, the next is %d: read the run again", c.Epoch, state.Epoch+1)
	}
	return c.change(Started{Epoch: state.Epoch + 1, Worker: c.Worker, Host: c.Host, Deadline: state.deadline(meta.At)}), nil
}

// deadline is counted once: a lost worker must not make a run longer.
func (s State) deadline(now time.Time) time.Time {
	if s.Deadline.IsZero() {
		return now.UTC().Add(time.Duration(s.Limits.WallSeconds) * time.Second)
	}
	return s.Deadline
}

// Decide implements event.Command.
func (c RecordSandbox) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, c.Stream())
	if err := state.requireHolder(c.Epoch, meta.Actor); err != nil {
		return nil, err
	}
	if state.Sandbox.Epoch == c.Epoch {
		return nil, fault.New(fault.Conflict, "sandbox_recorded", "a sandbox is recorded for epoch %d: release the run to change it", c.Epoch)
	}
	err := check.First(
		check.Name("host", c.Host, 255), check.Name("backend", c.Backend, 64),
		check.Line("cgroup", c.Cgroup, 0, 4096), check.Line("upper", c.Upper, 0, 4096),
		checkReport("report", c.Report), check.Range("duration_us", c.DurationUS, 0, 1<<53))
	if err == nil && c.Grade != nil {
		err = check.Name("grade", *c.Grade, 8)
	}
	if err != nil {
		return nil, err
	}
	return c.change(SandboxPrepared{
		Epoch: c.Epoch, Host: c.Host, Backend: c.Backend, Cgroup: c.Cgroup, Upper: c.Upper, Reattached: c.Reattached,
		Report: c.Report, Grade: c.Grade, DurationUS: c.DurationUS,
	}), nil
}

func checkReport(field string, report json.RawMessage) error {
	if len(report) == 0 || len(report) > maxReport || !json.Valid(report) {
		return fault.Field(field, "want 1 to %d bytes of JSON, got %d: give the sandbox's report", maxReport, len(report))
	}
	if bytes.Contains(report, []byte(`\u0000`)) {
		return fault.Field(field, "NUL in a string: PostgreSQL cannot hold it, remove it")
	}
	return nil
}

// Decide implements event.Command.
func (c Release) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, c.Stream())
	if err := state.requireHolder(c.Epoch, meta.Actor); err != nil {
		return nil, err
	}
	return c.change(Released{Epoch: c.Epoch, Worker: state.Worker, Queue: state.Queue, Task: state.Task}), nil
}

// Decide implements event.Command. Any worker may find a lease that ran out, also the one that bears the
// same name as the lost process; the epoch keeps every one of them from taking back a newer claim.
func (c LoseWorker) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if _, isWorker := event.ActorWorker(meta.Actor); !isWorker && meta.Actor != event.System {
		return nil, fault.New(fault.Denied, "lose_worker_denied", "%.80s cannot take a claim back: workers and the system do", meta.Actor)
	}
	state := event.StateOf[State](view, c.Stream())
	if err := state.requireHolder(c.Epoch, event.System); err != nil {
		return nil, err
	}
	if c.Worker != state.Worker {
		return nil, fault.Field("worker", "%.80q does not hold the run, %q does: read the run again", c.Worker, state.Worker)
	}
	return c.change(WorkerLost{Epoch: c.Epoch, Worker: c.Worker, Queue: state.Queue, Task: state.Task}), nil
}
