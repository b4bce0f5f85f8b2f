package catalog_test

import (
	"testing"

	"cairn/domain/agent"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
	"cairn/domain/task"
)

var aTask = task.Open{
	Task: id("task", 0), Space: id("space", 0), Agent: id("agent", 0), Run: id("first run", 0), Title: "T", Prompt: "P", Source: run.Source{Kind: "none"},
}

func (d desk) task() task.State {
	return d.w.state(task.Stream(id("task", 0), id("space", 0))).(task.State)
}

// attempt is the run of the task's newest attempt.
func (d desk) attempt() run.Target {
	return run.Target{Run: d.task().Last, Space: id("space", 0), Task: id("task", 0)}
}

// fails carries the newest attempt to its end.
func (d desk) fails() event.ID {
	d.Helper()
	r := d.attempt()
	epoch := d.claim(r, "a")
	d.w.must("worker/a", endTurn(r, run.Ending{Outcome: run.StatusFailed, Code: "odd", Epoch: epoch}))
	return r.Run
}

func carryOn(n int) task.Continue {
	return task.Continue{Task: id("task", 0), Space: id("space", 0), Agent: id("agent", 0), Run: id("run", n), Prompt: "more"}
}

func again(n int, of event.ID) task.Retry {
	return task.Retry{Task: id("task", 0), Space: id("space", 0), Agent: id("agent", 0), Run: id("run", n), Of: of}
}

func TestTaskAttempts(t *testing.T) {
	d := newDesk(t)
	d.refused("run_active", owner, carryOn(1))
	d.refused("run_active", owner, again(1, event.ID{}))
	d.refused("run_active", owner, again(1, id("first run", 0)))
	first := d.fails()
	d.refused("run_exists", owner, task.Continue{Task: id("task", 0), Space: id("space", 0), Agent: id("agent", 0), Run: first, Prompt: "more"})
	d.w.must(owner, carryOn(1))
	d.refused("run_active", owner, carryOn(2))
	second := d.run(d.attempt())
	if second.Attempt != 2 || second.Continues != first || !second.RetryOf.IsZero() || second.Prompt.Text() != "more" || second.Model != "demo" {
		t.Errorf("the continuation is %+v", second)
	}
	d.fails()
	d.w.must(owner, again(3, event.ID{}))
	if r := d.run(d.attempt()); r.Attempt != 3 || r.RetryOf != id("run", 1) || !r.Continues.IsZero() || r.Prompt.Text() != "P" {
		t.Errorf("the retry of the task is %+v", r)
	}
	d.fails()
	// Repeating the continuation starts where that started.
	other := again(4, id("run", 1))
	other.Model = "other"
	d.w.must(owner, other)
	if r := d.run(d.attempt()); r.Attempt != 4 || r.RetryOf != id("run", 1) || r.Continues != first || r.Prompt.Text() != "more" || r.Model != "other" {
		t.Errorf("the retry of the continuation is %+v", r)
	}
	d.w.check()
	d.w.drain()
}

func TestTaskRefusals(t *testing.T) {
	d := newDesk(t)
	auditor, stranger := event.AccountActor(id("account", 2)), event.AccountActor(id("account", 1))
	d.refused("task_exists", owner, aTask)
	fresh := aTask
	fresh.Task, fresh.Run = id("task", 7), id("run", 7)
	d.refused("role_too_low", auditor, fresh)
	d.refused("space_not_found", stranger, fresh)
	for _, bad := range []func(*task.Open){
		func(c *task.Open) { c.Title = "" },
		func(c *task.Open) { c.Title = "a\nb" },
		func(c *task.Open) { c.Prompt = "" },
		func(c *task.Open) { c.Model = "a b" },
		func(c *task.Open) { c.Source = run.Source{} },
		func(c *task.Open) { c.Queue = "Q Q" },
		func(c *task.Open) { c.Task = event.ID{} },
		func(c *task.Open) { c.Run = event.ID{} },
	} {
		c := fresh
		bad(&c)
		d.refused("invalid_field", owner, c)
	}
	d.fails()
	d.refused("role_too_low", auditor, carryOn(1))
	d.refused("role_too_low", auditor, again(1, event.ID{}))
	empty := carryOn(1)
	empty.Prompt = ""
	d.refused("invalid_field", owner, empty)
	elsewhere := carryOn(1)
	elsewhere.Space, elsewhere.Agent = id("space", 1), id("agent", 1)
	d.refused("task_not_found", stranger, elsewhere)
	d.refused("run_not_found", owner, again(1, id("first run", 1))) // of another task
	foreign := again(1, event.ID{})
	foreign.Agent = id("agent", 1)
	d.refused("invalid_field", owner, foreign)
	d.refused("invalid_field", owner, task.Retry{Task: id("task", 0), Space: id("space", 0), Agent: id("agent", 0)})
}

func TestTaskRunsEnd(t *testing.T) {
	d := newDesk(t)
	r := d.attempt()
	end := task.EndRun{Task: r.Task, Space: r.Space, Run: r.Run, End: run.Ending{Outcome: run.StatusFailed, Code: "odd"}}
	d.refused("end_run_denied", owner, end)
	d.refused("run_not_claimed", "worker/a", end)
	d.refused("run_not_found", "worker/a", conversation.EndTurn{Conversation: r.Task, Space: r.Space, Run: id("run", 9), End: end.End})
	cancel := task.CancelRun{Task: r.Task, Space: r.Space, Run: r.Run}
	d.refused("role_too_low", event.AccountActor(id("account", 2)), cancel)
	epoch := d.claim(r, "a")
	d.w.must(owner, cancel)
	d.w.must(owner, cancel) // asked before
	d.next(r, run.Cancel)
	d.w.must("worker/a", run.LoseWorker{Target: r, Epoch: epoch, Worker: "a"})
	d.w.must(owner, cancel) // nobody holds it any more
	if s := d.task(); !s.Idle() || d.run(r).Status != run.StatusCancelled {
		t.Errorf("after the cancellation: %+v", s)
	}
	d.refused("run_ended", owner, cancel)
	d.w.check()
}

// A run is claimed only through the kind of stream that it belongs to.
func TestTaskRunIsNoTurn(t *testing.T) {
	d := newDesk(t)
	r := d.attempt()
	d.refused("turn_not_started", "worker/a", run.Start{Target: run.Target{Run: r.Run, Space: r.Space, Conversation: r.Task}, Worker: "a", Host: "h"})
	d.refused("conversation_not_found", event.System, conversation.EndTurn{Conversation: r.Task, Space: r.Space, Run: r.Run, End: run.Ending{Outcome: run.StatusFailed, Code: "x"}})
}

func TestErasedTaskDrains(t *testing.T) {
	d := newDesk(t)
	d.w.must(owner, space.Erase{Space: id("space", 0), Claim: d.w.state(space.Stream(id("space", 0))).(space.State).Claim})
	if s := d.task(); !s.Title.Erased() || !s.Prompt.Erased() {
		t.Errorf("after the erasure: %+v", s)
	}
	d.w.drain()
	d.refused("space_erased", owner, carryOn(1))
}

func TestRetryOfATurn(t *testing.T) {
	d := newDesk(t)
	r := d.post(1)
	retry := conversation.RetryRun{
		Conversation: r.Conversation, Space: r.Space, Agent: id("agent", 0), Of: r.Run,
		Message: id("message", 2), Turn: id("turn", 2), Run: id("run", 2),
	}
	d.refused("run_active", owner, retry)
	epoch := d.claim(r, "a")
	d.refused("run_active", owner, retry)
	d.w.must("worker/a", endTurn(r, run.Ending{Outcome: run.StatusFailed, Code: "odd", Epoch: epoch}))
	d.refused("role_too_low", event.AccountActor(id("account", 2)), retry)
	d.w.must(owner, agent.Revise{Agent: id("agent", 0), Space: id("space", 0), DisplayName: "A", Model: "newer", Instructions: "Work better.", Tools: agent.Tools()})
	d.post(3) // it waits behind this one
	d.w.must(owner, retry)
	s := d.run(run.Target{Run: id("run", 2), Space: r.Space, Conversation: r.Conversation})
	if s.Attempt != 2 || s.RetryOf != r.Run || s.Prompt.Text() != "hello" || s.Model != "demo" || s.Instructions.Text() != "Work better." || !s.Continues.IsZero() {
		t.Errorf("the retry is %+v", s)
	}
	if n := len(d.thread().Waiting); n != 1 {
		t.Errorf("%d messages wait, want the retry", n)
	}
	unknown := retry
	unknown.Of, unknown.Message, unknown.Turn, unknown.Run = id("run", 99), id("message", 9), id("turn", 9), id("run", 9)
	d.refused("run_not_found", owner, unknown)
	d.w.drain()
}
