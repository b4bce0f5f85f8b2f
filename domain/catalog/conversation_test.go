package catalog_test

import (
	"strings"
	"testing"

	"cairn/domain/agent"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
)

var owner = event.AccountActor(id("account", 0))

func cancel(t run.Target) conversation.CancelRun {
	return conversation.CancelRun{Conversation: t.Conversation, Space: t.Space, Run: t.Run}
}

func TestOneTurnAtATime(t *testing.T) {
	d := newDesk(t)
	var runs []run.Target
	for n := range 3 {
		runs = append(runs, d.post(n))
	}
	d.refused("turn_not_started", "worker/a", run.Start{Target: runs[1], Worker: "a", Host: "h"})
	for n, r := range runs {
		if active := d.thread().Active; active.Run != r.Run || active.Number != int64(n+1) {
			t.Fatalf("active %+v, want run %d", active, n)
		}
		epoch := d.claim(r, "a")
		d.w.must("worker/a", endTurn(r, run.Ending{Outcome: run.StatusFailed, Code: run.CodeModelRefused, Message: "no", Epoch: epoch}))
		d.w.check()
	}
	if s := d.thread(); !s.Idle() || len(s.Waiting) != 0 || s.Started != 3 {
		t.Errorf("left over: %+v", s)
	}
}

func TestPinnedOnTheRun(t *testing.T) {
	d := newDesk(t)
	m := d.message(1)
	m.Model = "other"
	d.w.must(owner, m)
	calls := int64(1)
	d.w.must(owner, agent.Revise{Agent: m.Agent, Space: m.Space, DisplayName: "A", Model: "newer", Limits: agent.AskedLimits{ModelCalls: &calls}})
	r := d.run(run.Target{Run: m.Run, Space: m.Space, Conversation: m.Conversation})
	if r.Model != "other" || r.Revision != 1 || r.Instructions.Text() != "Work." || r.Limits != agent.DefaultLimits || len(r.Tools) != 6 {
		t.Errorf("pinned %+v", r)
	}
	if second := d.run(d.post(2)); second.Model != "newer" || second.Revision != 2 || second.Limits.ModelCalls != 1 || second.Tools == nil {
		t.Errorf("pinned %+v", second)
	}
}

func TestModelCallLimit(t *testing.T) {
	d := newDesk(t)
	calls := int64(1)
	d.w.must(owner, agent.Revise{Agent: id("agent", 0), Space: id("space", 0), DisplayName: "A", Model: "demo", Limits: agent.AskedLimits{ModelCalls: &calls}})
	r := d.post(1)
	epoch := d.claim(r, "a")
	d.answer(r, "a", run.CallWish{ID: "c", Tool: "shell"})
	d.w.must("worker/a", run.ReturnTool{Target: r, Epoch: epoch, Call: "c", Outcome: run.OutcomeError})
	if next := d.next(r, run.Fail); next.Code != run.CodeLimitModelCalls {
		t.Errorf("code %q", next.Code)
	}
	d.refused(run.CodeLimitModelCalls, "worker/a", run.RecordAnswer{Target: r, Epoch: epoch, Step: 2, Model: "demo", Finish: "stop"})
}

func TestCancel(t *testing.T) {
	d := newDesk(t)
	active, waiting, last := d.post(1), d.post(2), d.post(3)
	d.w.must(owner, cancel(waiting))
	if s := d.thread(); s.Active.Run != active.Run || len(s.Waiting) != 1 || d.run(waiting).Status != run.StatusCancelled {
		t.Fatalf("after cancelling a waiting run: %+v", s)
	}
	epoch := d.claim(active, "a")
	d.refused("cancel_not_requested", "worker/a", endTurn(active, run.Ending{Outcome: run.StatusCancelled, Epoch: epoch}))
	d.answer(active, "a", run.CallWish{ID: "c", Tool: agent.Shell})
	d.w.must(owner, cancel(active))
	events := len(d.w.streams[active.Run].events)
	d.w.must(owner, cancel(active))
	if len(d.w.streams[active.Run].events) != events {
		t.Error("a repeated cancel changed something")
	}
	d.next(active, run.Cancel)
	d.refused("cancel_requested", "worker/a", run.CallTool{Target: active, Epoch: epoch, Call: "c"})
	d.w.must("worker/a", endTurn(active, run.Ending{Outcome: run.StatusCancelled, Epoch: epoch}))
	if d.thread().Active.Run != last.Run {
		t.Fatal("the next turn did not start")
	}
	d.refused("run_ended", owner, cancel(active))
	// Lost after a claim: nobody holds it, so it ends at once, under the epoch that was reached.
	epoch = d.claim(last, "b")
	d.w.must("worker/b", run.Release{Target: last, Epoch: epoch})
	d.w.must(owner, cancel(last))
	if !d.thread().Idle() || d.run(last).Status != run.StatusCancelled {
		t.Error("a released run did not end at once")
	}
	d.w.check()
}

func TestWhoMayEnd(t *testing.T) {
	d := newDesk(t)
	r, waiting := d.post(1), d.post(2)
	fail := run.Ending{Outcome: run.StatusFailed, Code: run.CodeWorkspaceLost}
	d.refused("end_turn_denied", owner, endTurn(r, fail))
	d.refused("run_not_claimed", "worker/a", endTurn(r, fail))
	d.refused("turn_not_started", event.System, endTurn(waiting, fail))
	d.refused("run_not_claimed", event.System, endTurn(r, run.Ending{Outcome: run.StatusSucceeded}))
	d.refused("invalid_field", event.System, endTurn(r, run.Ending{Outcome: run.StatusFailed, Code: "Bad Code"}))
	d.refused("invalid_field", event.System, endTurn(r, run.Ending{Outcome: run.StatusCancelled, Answer: "a"}))
	d.w.must(event.System, endTurn(r, fail))
	if d.thread().Active.Run != waiting.Run {
		t.Error("the next turn did not start")
	}
}

func TestPostRefusals(t *testing.T) {
	d := newDesk(t)
	d.post(1)
	for name, text := range map[string]string{"empty": "", "NUL": "a\x00b", "not UTF-8": "\xff", "too long": strings.Repeat("x", 1<<20+1)} {
		m := d.message(2)
		m.Text = text
		t.Log(name)
		d.refused("invalid_field", owner, m)
	}
	m := d.message(2)
	m.Text = strings.Repeat("x", 1<<20)
	d.w.must(owner, m)
	d.refused("run_exists", owner, d.message(2))
	m = d.message(3)
	m.Turn = id("turn", 2)
	d.refused("message_exists", owner, m)
	m = d.message(3)
	m.Agent = id("agent", 1)
	d.refused("invalid_field", owner, m)
	d.refused("role_too_low", event.AccountActor(id("account", 2)), d.message(3))
	d.refused("space_not_found", event.AccountActor(id("account", 1)), d.message(3))
	d.refused("worker_denied", "worker/a", d.message(3))
}

func TestQueueIsBounded(t *testing.T) {
	s := conversation.State{Opened: true, Agent: id("agent", 0), Active: conversation.Turn{Turn: id("turn", 9999)}}
	d := newDesk(t)
	for n := range conversation.MaxWaiting {
		s.Waiting = append(s.Waiting, conversation.Turn{Turn: id("w", n), Run: id("w", n), Message: id("w", n)})
	}
	d.w.streams[id("conversation", 0)].state = s
	d.refused("messages_exhausted", owner, d.message(1))
}

// A foreign space's agent, conversation and run do not exist here, whoever names their ids.
func TestTenantsAreApart(t *testing.T) {
	d := newDesk(t)
	r := d.post(1)
	stranger := event.AccountActor(id("account", 1)) // owner of space 1
	d.refused("agent_not_found", stranger, conversation.Open{Conversation: id("conversation", 7), Space: id("space", 1), Agent: id("agent", 0), Title: "T", Source: run.Source{Kind: "none"}})
	m := d.message(2)
	m.Space = id("space", 1)
	d.refused("conversation_not_found", stranger, m)
	d.refused("run_not_found", stranger, conversation.CancelRun{Conversation: r.Conversation, Space: id("space", 1), Run: r.Run})
	d.refused("stream_exists", stranger, agent.Revise{Agent: id("agent", 0), Space: id("space", 1), DisplayName: "A", Model: "demo"})
}

func TestErasedSpaceDrains(t *testing.T) {
	d := newDesk(t)
	r := d.post(1)
	d.post(2)
	epoch := d.claim(r, "a")
	d.w.must(owner, space.Erase{Space: id("space", 0), Claim: d.w.state(space.Stream(id("space", 0))).(space.State).Claim})
	if next := d.next(r, run.Fail); next.Code != run.CodeContentErased {
		t.Errorf("code %q", next.Code)
	}
	d.refused("content_erased", "worker/a", endTurn(r, run.Ending{Outcome: run.StatusFailed, Code: run.CodeContentErased, Message: "x", Epoch: epoch}))
	d.refused("space_erased", owner, d.message(3))
	d.w.drain()
}

func TestSources(t *testing.T) {
	d := newDesk(t)
	bad := []run.Source{
		{},
		{Kind: "git"},
		{Kind: "none", Path: "/x"},
		{Kind: "folder", Path: "/x"},
		{Kind: "folder", Root: "r", Path: "../x"},
		{Kind: "folder", Root: "r", Path: "x/"},
		{Kind: "folder", Root: "r", Path: "."},
		{Kind: "folder", Root: "r", Path: "x/../../y"},
		{Kind: "files"},
		{Kind: "files", Files: run.Files{Manifest: event.Content{Key: id("space", 0), Blob: "../x"}}},
		{Kind: "files", Path: "x", Files: run.Files{Manifest: event.Content{Key: id("space", 0), Blob: strings.Repeat("a", 64)}}},
		{Kind: "none", Files: run.Files{Manifest: event.Content{Key: id("space", 0), Blob: strings.Repeat("a", 64)}}},
		{Kind: "folder", Root: "r", Path: "/x/../etc"},
		{Kind: "folder", Root: "r", Path: "/x\n"},
	}
	c := conversation.Open{Conversation: id("conversation", 5), Space: id("space", 0), Agent: id("agent", 0), Title: "T", Source: run.Source{Kind: "folder", Root: "r", Path: "/x"}}
	for _, source := range bad {
		b := c
		b.Source = source
		d.refused("invalid_field", owner, b)
	}
	for _, mounts := range [][]run.Mount{{{Source: "/a", Target: "/"}}, {{Source: "a", Target: "/a"}}, {{Source: "/a", Target: "/t"}, {Source: "/b", Target: "/t"}}, make([]run.Mount, 33)} {
		b := c
		b.Mounts = mounts
		d.refused("invalid_field", owner, b)
	}
	d.w.must(owner, c)
	d.refused("conversation_exists", owner, c)
}
