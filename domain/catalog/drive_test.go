package catalog_test

import (
	"cairn/domain/catalog"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/task"
)

func allCommands() []string {
	var names []string
	for _, c := range catalog.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// obey is the command that Next asks for, with a model that has nothing more to say.
func obey(t run.Target, s run.State, epoch int64) event.Command {
	next := run.Next(s)
	switch next.Kind {
	case run.CallModel:
		return run.RecordAnswer{Target: t, Epoch: epoch, Step: int64(len(s.Steps) + 1), Model: "demo", Text: "done", Finish: "stop"}
	case run.DoCall:
		return run.CallTool{Target: t, Epoch: epoch, Call: next.Call.ID, Again: next.Again}
	case run.RefuseCall:
		return run.ReturnTool{Target: t, Epoch: epoch, Call: next.Call.ID, Outcome: run.OutcomeError, Output: "not granted"}
	case run.ReportDoubt:
		return run.ReturnTool{Target: t, Epoch: epoch, Call: next.Call.ID, Outcome: run.OutcomeInDoubt, Output: "nobody knows"}
	case run.Finish:
		return endTurn(t, run.Ending{Outcome: run.StatusSucceeded, Answer: next.Answer, Epoch: epoch})
	case run.Fail:
		return endTurn(t, run.Ending{Outcome: run.StatusFailed, Code: next.Code, Epoch: epoch})
	case run.Cancel:
		return endTurn(t, run.Ending{Outcome: run.StatusCancelled, Epoch: epoch})
	}
	for _, step := range s.Steps {
		for _, call := range step.Calls {
			if call.State == run.Called {
				return run.ReturnTool{Target: t, Epoch: epoch, Call: call.ID, Outcome: run.OutcomeOK, Output: "o"}
			}
		}
	}
	return run.Release{Target: t, Epoch: epoch}
}

// drain lets one worker obey until every conversation and task is idle. That it gets there is the proof that every
// message gets its turn, that Next never asks for what Decide refuses, and that an erased key blocks nothing.
func (w *world) drain() {
	for steps := 0; ; steps++ {
		t, s, ok := w.busy()
		if !ok {
			break
		}
		if steps > 20000 {
			w.t.Fatalf("run %s never ends: %s", t.Run, encode(w.t, s))
		}
		w.must(w.drive(t, s))
	}
	w.check()
	for _, id := range w.order {
		if state, ok := w.streams[id].state.(run.State); ok && !state.Status.Terminal() {
			w.t.Fatalf("run %s is left over as %s", id, state.Status)
		}
	}
}

func (w *world) busy() (run.Target, run.State, bool) {
	for _, id := range w.order {
		s := w.streams[id]
		if c, ok := s.state.(conversation.State); ok && !c.Idle() {
			t := run.Target{Run: c.Active.Run, Space: s.ref.Space, Conversation: s.ref.ID}
			return t, w.state(t.Stream()).(run.State), true
		}
		if k, ok := s.state.(task.State); ok && !k.Idle() {
			t := run.Target{Run: k.Active, Space: s.ref.Space, Task: s.ref.ID}
			return t, w.state(t.Stream()).(run.State), true
		}
	}
	return run.Target{}, run.State{}, false
}

func (w *world) drive(t run.Target, s run.State) (string, event.Command) {
	if s.Status == run.StatusQueued {
		return "worker/last", run.Start{Target: t, Worker: "last", Host: "h", Epoch: s.Epoch + 1}
	}
	actor := event.WorkerActor(s.Worker)
	if next := run.Next(s); next.Kind == run.DoCall && s.Sandbox.Epoch != s.Epoch {
		return actor, run.RecordSandbox{Target: t, Epoch: s.Epoch, Host: "h", Backend: "native", Report: []byte(`{}`)}
	}
	return actor, obey(t, s, s.Epoch)
}
