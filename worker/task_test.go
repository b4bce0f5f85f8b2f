package worker_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"cairn/db/dbtest"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/task"
	"cairn/worker"
)

// assign opens a task; its first run works on the lines.
func (b *bench) assign(queue string, lines ...string) run.Target {
	b.t.Helper()
	open := task.Open{
		Task: dbtest.NewID(), Space: b.team.Space, Agent: b.team.Agent, Run: dbtest.NewID(), Title: "Test", Prompt: strings.Join(lines, "\n"),
		Source: run.Source{Kind: run.SourceNone}, Queue: queue,
	}
	dbtest.Must(b.t, b.d, b.team.Actor(), open)
	return run.Target{Run: open.Run, Space: open.Space, Task: open.Task}
}

// carryOn starts another attempt that goes on from the newest one.
func (b *bench) carryOn(t run.Target, lines ...string) run.Target {
	b.t.Helper()
	t.Run = dbtest.NewID()
	dbtest.Must(b.t, b.d, b.team.Actor(), task.Continue{Task: t.Task, Space: t.Space, Agent: b.team.Agent, Run: t.Run, Prompt: strings.Join(lines, "\n")})
	return t
}

// again repeats the task, or one of its runs.
func (b *bench) again(t run.Target, of event.ID) run.Target {
	b.t.Helper()
	t.Run = dbtest.NewID()
	dbtest.Must(b.t, b.d, b.team.Actor(), task.Retry{Task: t.Task, Space: t.Space, Agent: b.team.Agent, Run: t.Run, Of: of})
	return t
}

func (b *bench) taskState(t run.Target) task.State {
	b.t.Helper()
	value, _, err := b.d.Load(b.t.Context(), task.Stream(t.Task, t.Space))
	if err != nil {
		b.t.Fatal(err)
	}
	return value.(task.State)
}

func output(state run.State, step int) string { return state.Steps[step].Calls[0].Result.Output.Text() }

// A continuation finds the files of what it continues, whatever that came to; a retry begins at the source.
func TestTaskGoesOnFromItsFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work("one")
	first := b.assign("", "$ ls; echo one > a.txt")
	if got := output(b.ends(first, run.StatusSucceeded, 60*time.Second), 0); got != "exit code: 0\n" {
		t.Errorf("the first attempt saw %q", got)
	}
	second := b.carryOn(first, "$ cat a.txt; echo two > b.txt", "$ touch started; sleep 600")
	b.until(60*time.Second, func() bool { s := b.state(second); return s.Sandbox.Epoch > 0 && has(s, "started", "") }, "the call that will be cancelled")
	dbtest.Must(t, b.d, b.team.Actor(), task.CancelRun{Task: second.Task, Space: second.Space, Run: second.Run})
	cancelled := b.ends(second, run.StatusCancelled, 60*time.Second)
	if got := output(cancelled, 0); got != "exit code: 0\none\n" {
		t.Errorf("the continuation saw %q", got)
	}
	third := b.ends(b.carryOn(second, "$ cat a.txt b.txt; rm a.txt"), run.StatusSucceeded, 60*time.Second)
	if got := output(third, 0); got != "exit code: 0\none\ntwo\n" {
		t.Errorf("after a cancelled attempt its continuation saw %q", got)
	}
	// The same continuation once more starts where that one started, with the file that it removed.
	again := b.ends(b.again(second, b.taskState(second).Last), run.StatusSucceeded, 60*time.Second)
	if got := output(again, 0); got != "exit code: 0\none\ntwo\n" || again.Attempt != 4 {
		t.Errorf("attempt %d, the repeated continuation, saw %q", again.Attempt, got)
	}
	fresh := b.ends(b.again(second, event.ID{}), run.StatusSucceeded, 60*time.Second)
	if got := output(fresh, 0); got != "exit code: 0\n" || b.file(fresh, "a.txt") != "one\n" {
		t.Errorf("the retry saw %q", got)
	}
	if s := b.taskState(first); !s.Idle() || s.Attempts != 5 {
		t.Errorf("the task is %+v", s)
	}
}

// TestTaskFilesAreGone: files that are out of reach fail a continuation; a retry needs none.
func TestTaskFilesAreGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work("one")
	first := b.assign("", "$ echo one > a.txt")
	ended := b.ends(first, run.StatusSucceeded, 60*time.Second)
	if err := os.RemoveAll(ended.Sandbox.Upper); err != nil {
		t.Fatal(err)
	}
	state := b.ends(b.carryOn(first, "$ ls"), run.StatusFailed, 60*time.Second)
	if state.Code != run.CodeWorkspaceLost || !strings.Contains(state.Message.Text(), "retry the task") {
		t.Errorf("the continuation ended with %s: %s", state.Code, state.Message.Text())
	}
	b.ends(b.again(first, event.ID{}), run.StatusSucceeded, 60*time.Second)
}

// TestKilledWorkerOfATask: a run and its attempt have both ended or neither, whenever the worker dies.
func TestKilledWorkerOfATask(t *testing.T) {
	t.Parallel()
	points := map[string]struct {
		plan  childPlan
		doubt int
	}{
		"between call and return":         {childPlan{DieAt: "run.tool_returned", DieNumber: 2}, 1},
		"before the end of the run":       {childPlan{DieAt: "run.succeeded", DieNumber: 1}, 0},
		"before the end of the attempt":   {childPlan{DieAt: "task.attempt_ended", DieNumber: 1}, 0},
		"while the attempt's end is sent": {childPlan{DieAt: "task.attempt_ended", DieNumber: 1, DieSent: true}, 0},
	}
	for name, point := range points {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			target := b.assign("", countedScript...)
			point.plan.Name = "doomed"
			doomed := b.spawn(point.plan)
			doomed.killed()
			if ended, idle := b.state(target).Status.Terminal(), b.taskState(target).Idle(); ended != idle {
				t.Errorf("the run has ended: %v, its attempt: %v", ended, idle)
			}
			b.inherit()
			b.counted(b.ends(target, run.StatusSucceeded, 60*time.Second), point.doubt)
			if s := b.taskState(target); !s.Idle() || s.Last != target.Run {
				t.Errorf("the task is %+v", s)
			}
			if row, err := b.d.Read().TaskByID(t.Context(), target.Task); err != nil || row.State != "succeeded" {
				t.Errorf("the row says %q, %v", row.State, err)
			}
		})
	}
}

// TestNothingWritesBeneathAContinuation: a worker that stands still keeps its sandbox alive. Its run is cancelled
// meanwhile, and continued: what that sandbox writes must not change the files beneath.
func TestNothingWritesBeneathAContinuation(t *testing.T) {
	b := newBench(t)
	frozen := b.spawn(childPlan{Name: "frozen"})
	first := b.assign("", "$ while true; do echo x >> ticks; sleep 0.02; done")
	b.until(60*time.Second, func() bool {
		s := b.state(first)
		info, err := os.Stat(s.Sandbox.Upper + "/ticks")
		return s.Sandbox.Epoch > 0 && err == nil && info.Size() > 10
	}, "the writer")
	frozen.signal(syscall.SIGSTOP)
	dbtest.Must(t, b.d, event.System, run.LoseWorker{Target: first, Epoch: b.state(first).Epoch, Worker: "frozen"})
	dbtest.Must(t, b.d, b.team.Actor(), task.CancelRun{Task: first.Task, Space: first.Space, Run: first.Run})
	upper := b.state(first).Sandbox.Upper
	second := b.carryOn(first, "$ wc -l < ticks; sleep 1; wc -l < ticks")
	b.work("other", func(o *worker.Options) { o.Name = "other" })
	state := b.ends(second, run.StatusSucceeded, 60*time.Second)
	seen := strings.Fields(strings.TrimPrefix(output(state, 0), "exit code: 0\n"))
	if len(seen) != 2 || seen[0] != seen[1] || seen[0] == "0" || len(groups(first)) > 0 {
		t.Errorf("the continuation of a run whose sandbox was left saw %q in %s, groups %v", seen, upper, groups(first))
	}
}

// TestLocalTaskOfALostWorker: nobody else serves its queue, so that the run and its attempt fail together.
func TestLocalTaskOfALostWorker(t *testing.T) {
	b := newBench(t)
	queue := conversation.LocalQueue + dbtest.NewID().String()
	doomed := b.spawn(childPlan{Name: "doomed", Queues: []string{queue}, DieAt: "run.tool_returned", DieNumber: 1})
	target := b.assign(queue, "$ true")
	doomed.killed()
	b.inherit()
	state := b.ends(target, run.StatusFailed, 60*time.Second)
	if s := b.taskState(target); state.Code != run.CodeWorkerLost || !s.Idle() {
		t.Errorf("the run ended with %s, the task is %+v", state.Code, s)
	}
}
