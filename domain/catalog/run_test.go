package catalog_test

import (
	"strings"
	"testing"
	"time"

	"cairn/domain/agent"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
)

// desk is a world with messages in conversation 0 and short words to drive them.
type desk struct {
	*testing.T
	w *world
}

func newDesk(t *testing.T) desk {
	w := newWorld(t)
	w.setUp()
	return desk{t, w}
}

func (d desk) message(n int) conversation.PostMessage {
	return conversation.PostMessage{
		Conversation: id("conversation", 0), Space: id("space", 0), Agent: id("agent", 0),
		Message: id("message", n), Turn: id("turn", n), Run: id("run", n), Text: "hello",
	}
}

func (d desk) post(n int) run.Target {
	d.Helper()
	d.w.must(event.AccountActor(id("account", 0)), d.message(n))
	return run.Target{Run: id("run", n), Space: id("space", 0), Conversation: id("conversation", 0)}
}

func (d desk) run(t run.Target) run.State { return d.w.state(t.Stream()).(run.State) }

func (d desk) thread() conversation.State {
	return d.w.state(conversation.Stream(id("conversation", 0), id("space", 0))).(conversation.State)
}

// claim starts the run as worker name, with a sandbox.
func (d desk) claim(t run.Target, name string) int64 {
	d.Helper()
	d.w.must(event.WorkerActor(name), run.Start{Target: t, Worker: name, Host: "h"})
	epoch := d.run(t).Epoch
	d.w.must(event.WorkerActor(name), run.RecordSandbox{Target: t, Epoch: epoch, Host: "h", Backend: "native", Upper: "/u", Report: []byte(`{}`)})
	return epoch
}

func (d desk) answer(t run.Target, name string, calls ...run.CallWish) {
	d.Helper()
	s := d.run(t)
	d.w.must(event.WorkerActor(name), run.RecordAnswer{Target: t, Epoch: s.Epoch, Step: int64(len(s.Steps)) + 1, Model: "demo", Text: "t", Finish: "stop", Calls: calls})
}

func (d desk) refused(code, actor string, c event.Command) {
	d.Helper()
	if err := d.w.execute(actor, c); !fault.HasCode(err, code) {
		d.Errorf("%s as %s: got %v, want %s", c.Name(), actor, err, code)
	}
}

func (d desk) next(t run.Target, kind run.ActionKind) run.Action {
	d.Helper()
	next := run.Next(d.run(t))
	if next.Kind != kind {
		d.Fatalf("next is %s, want %s", next.Kind, kind)
	}
	return next
}

func TestRunLifeAndNext(t *testing.T) {
	d := newDesk(t)
	r := d.post(1)
	d.next(r, run.Nothing)
	epoch := d.claim(r, "a")
	d.next(r, run.CallModel)
	d.answer(r, "a", run.CallWish{ID: "c1", Tool: agent.Shell, Arguments: "{}"}, run.CallWish{ID: "c2", Tool: "rocket"})
	if call := d.next(r, run.DoCall); call.Call.ID != "c1" || call.Again {
		t.Errorf("call %+v", call)
	}
	d.w.must("worker/a", run.CallTool{Target: r, Epoch: epoch, Call: "c1"})
	d.next(r, run.Nothing)
	d.refused("call_called", "worker/a", run.CallTool{Target: r, Epoch: epoch, Call: "c1"})
	d.refused("call_not_in_doubt", "worker/a", run.CallTool{Target: r, Epoch: epoch, Call: "c1", Again: true})
	code := 3
	d.w.must("worker/a", run.ReturnTool{Target: r, Epoch: epoch, Call: "c1", Outcome: run.OutcomeError, ExitCode: &code, Output: "o", OutputBytes: 1})
	d.refused("call_returned", "worker/a", run.ReturnTool{Target: r, Epoch: epoch, Call: "c1", Outcome: run.OutcomeOK})
	d.next(r, run.RefuseCall)
	d.refused("tool_not_granted", "worker/a", run.CallTool{Target: r, Epoch: epoch, Call: "c2"})
	d.refused("call_not_called", "worker/a", run.ReturnTool{Target: r, Epoch: epoch, Call: "c2", Outcome: run.OutcomeOK})
	d.refused("call_open", "worker/a", run.RecordAnswer{Target: r, Epoch: epoch, Step: 2, Model: "demo", Finish: "stop"})
	d.refused("call_open", "worker/a", endTurn(r, run.Ending{Outcome: run.StatusSucceeded, Epoch: epoch}))
	d.w.must("worker/a", run.ReturnTool{Target: r, Epoch: epoch, Call: "c2", Outcome: run.OutcomeError})
	d.next(r, run.CallModel)
	d.answer(r, "a")
	d.refused("step_final", "worker/a", run.RecordAnswer{Target: r, Epoch: epoch, Step: 3, Model: "demo", Finish: "stop"})
	if end := d.next(r, run.Finish); end.Answer != "t" {
		t.Errorf("answer %q", end.Answer)
	}
	d.w.must("worker/a", endTurn(r, run.Ending{Outcome: run.StatusSucceeded, Answer: "t", Epoch: epoch}))
	d.next(r, run.Nothing)
	d.refused("run_ended", "worker/a", run.Release{Target: r, Epoch: epoch})
	if call, _ := d.run(r).FindCall("c1"); *call.Result.ExitCode != 3 || call.Result.Output.Text() != "o" {
		t.Errorf("result %+v", call.Result)
	}
}

func TestRunFencing(t *testing.T) {
	d := newDesk(t)
	r := d.post(1)
	d.refused("run_not_claimed", "worker/a", run.Release{Target: r})
	d.refused("run_start_denied", "worker/b", run.Start{Target: r, Worker: "a", Host: "h"})
	d.refused("run_fenced", "worker/a", run.Start{Target: r, Worker: "a", Host: "h", Epoch: 2})
	epoch := d.claim(r, "a")
	deadline := d.run(r).Deadline
	d.refused("run_claimed", "worker/b", run.Start{Target: r, Worker: "b", Host: "h"})
	d.refused("run_not_yours", "worker/b", run.Release{Target: r, Epoch: epoch})
	d.refused("lose_worker_denied", event.AccountActor(id("account", 0)), run.LoseWorker{Target: r, Epoch: epoch, Worker: "a"})
	d.refused("invalid_field", "worker/b", run.LoseWorker{Target: r, Epoch: epoch, Worker: "c"})
	d.w.must("worker/b", run.LoseWorker{Target: r, Epoch: epoch, Worker: "a"})
	zombie := []event.Command{
		run.Release{Target: r, Epoch: epoch},
		run.LoseWorker{Target: r, Epoch: epoch, Worker: "a"},
		run.RecordSandbox{Target: r, Epoch: epoch, Host: "h", Backend: "b", Report: []byte(`1`)},
		run.RecordAnswer{Target: r, Epoch: epoch, Step: 1, Model: "demo", Finish: "stop"},
		run.CallTool{Target: r, Epoch: epoch, Call: "c1"},
		run.ReturnTool{Target: r, Epoch: epoch, Call: "c1", Outcome: "ok"},
		endTurn(r, run.Ending{Outcome: run.StatusFailed, Code: "x", Epoch: epoch}),
	}
	for _, c := range zombie {
		d.refused("run_fenced", "worker/a", c)
	}
	d.claim(r, "b")
	for _, c := range zombie {
		d.refused("run_fenced", "worker/a", c)
	}
	if got := d.run(r); got.Epoch != 2 || !got.Deadline.Equal(deadline) || deadline.Sub(d.w.now) > time.Hour {
		t.Errorf("epoch %d, deadline %s, was %s", got.Epoch, got.Deadline, deadline)
	}
}

func TestRunInDoubt(t *testing.T) {
	d := newDesk(t)
	r := d.post(1)
	first := d.claim(r, "a")
	d.answer(r, "a", run.CallWish{ID: "r", Tool: agent.Read}, run.CallWish{ID: "w", Tool: agent.Write})
	for _, call := range []string{"r", "w"} {
		d.w.must("worker/a", run.CallTool{Target: r, Epoch: first, Call: call})
	}
	d.w.must("system", run.LoseWorker{Target: r, Epoch: first, Worker: "a"})
	d.w.must("worker/b", run.Start{Target: r, Worker: "b", Host: "h"})
	d.refused("sandbox_missing", "worker/b", run.CallTool{Target: r, Epoch: 2, Call: "r", Again: true})
	d.w.must("worker/b", run.RecordSandbox{Target: r, Epoch: 2, Host: "h", Backend: "native", Reattached: true, Report: []byte(`{}`)})
	d.refused("sandbox_recorded", "worker/b", run.RecordSandbox{Target: r, Epoch: 2, Host: "h", Backend: "native", Report: []byte(`{}`)})

	if next := d.next(r, run.DoCall); !next.Again || next.Call.ID != "r" {
		t.Errorf("next %+v", next)
	}
	d.refused("call_in_doubt", "worker/b", run.CallTool{Target: r, Epoch: 2, Call: "r"})
	d.refused("call_in_doubt", "worker/b", run.ReturnTool{Target: r, Epoch: 2, Call: "r", Outcome: run.OutcomeOK})
	d.w.must("worker/b", run.CallTool{Target: r, Epoch: 2, Call: "r", Again: true})
	d.w.must("worker/b", run.ReturnTool{Target: r, Epoch: 2, Call: "r", Outcome: run.OutcomeOK})

	d.next(r, run.ReportDoubt)
	d.refused("call_in_doubt", "worker/b", run.CallTool{Target: r, Epoch: 2, Call: "w", Again: true})
	d.w.must("worker/b", run.ReturnTool{Target: r, Epoch: 2, Call: "w", Outcome: run.OutcomeInDoubt})
	d.next(r, run.CallModel)
}

func TestRunBadAnswers(t *testing.T) {
	d := newDesk(t)
	r := d.post(1)
	epoch := d.claim(r, "a")
	good := run.RecordAnswer{Target: r, Epoch: epoch, Step: 1, Model: "demo", Finish: "stop"}
	bad := map[string]func(*run.RecordAnswer){
		"too long":   func(c *run.RecordAnswer) { c.Text = strings.Repeat("x", 1<<20+1) },
		"NUL":        func(c *run.RecordAnswer) { c.Text = "a\x00" },
		"surrogate":  func(c *run.RecordAnswer) { c.Text = "\xed\xa0\x80" },
		"model":      func(c *run.RecordAnswer) { c.Model = "a model" },
		"finish":     func(c *run.RecordAnswer) { c.Finish = "" },
		"duration":   func(c *run.RecordAnswer) { c.DurationUS = -1 },
		"tokens":     func(c *run.RecordAnswer) { n := int64(-1); c.Usage.InputTokens = &n },
		"call id":    func(c *run.RecordAnswer) { c.Calls = []run.CallWish{{ID: "", Tool: "x"}} },
		"call twice": func(c *run.RecordAnswer) { c.Calls = []run.CallWish{{ID: "c", Tool: "x"}, {ID: "c", Tool: "x"}} },
		"calls":      func(c *run.RecordAnswer) { c.Calls = make([]run.CallWish, 129) },
	}
	for name, spoil := range bad {
		c := good
		spoil(&c)
		if err := d.w.execute("worker/a", c); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.refused("step_out_of_order", "worker/a", run.RecordAnswer{Target: r, Epoch: epoch, Step: 2, Model: "demo", Finish: "stop"})
	for _, report := range []string{"", "{", `{"a":"\u0000"}`} {
		d.w.must("worker/a", run.Release{Target: r, Epoch: d.run(r).Epoch})
		d.w.must("worker/a", run.Start{Target: r, Worker: "a", Host: "h"})
		d.refused("invalid_field", "worker/a", run.RecordSandbox{Target: r, Epoch: d.run(r).Epoch, Host: "h", Backend: "b", Report: []byte(report)})
	}
}

// TestLongTranscripts folds many answers, so that a slice with room to spare would be shared between folds.
func TestLongTranscripts(t *testing.T) {
	w := newWorld(t)
	s := &stream{ref: run.Stream(id("run", 0), id("space", 0), id("conversation", 0)), state: run.Evolve(run.State{}, run.Queued{})}
	for range 20 {
		w.evolve(s, run.ModelAnswered{Finish: "stop", Calls: []run.AskedCall{{ID: "c", Tool: agent.Shell}}})
		w.evolve(s, run.ToolCalled{Call: "c", Epoch: 1})
		w.evolve(s, run.ModelAnswered{Finish: "tools"})
	}
}
