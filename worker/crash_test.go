package worker_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cairn/domain/conversation"
	"cairn/domain/fault"
	"cairn/domain/run"

	"cairn/db/dbtest"
	"cairn/domain/event"
	"cairn/worker"
)

// countedScript appends a line to a file in each of three calls: a call that is made twice shows.
var countedScript = []string{"$ echo 1 >> counter", "$ echo 2 >> counter", "$ echo 3 >> counter"}

func TestKilledWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	points := map[string]struct {
		plan  childPlan
		doubt int // calls in doubt: exactly so many, or -1 for none or one, as the moment falls
	}{
		"before the claim":                     {childPlan{DieAt: "run.started", DieNumber: 1, DieSent: true}, -1},
		"between answer and call":              {childPlan{DieAt: "run.tool_called", DieNumber: 2}, 0},
		"between call and return":              {childPlan{DieAt: "run.tool_returned", DieNumber: 2}, 1},
		"while an answer is appended":          {childPlan{DieAt: "run.model_answered", DieNumber: 2, DieSent: true}, -1},
		"while a call is appended":             {childPlan{DieAt: "run.tool_called", DieNumber: 2, DieSent: true}, -1},
		"while a return is appended":           {childPlan{DieAt: "run.tool_returned", DieNumber: 2, DieSent: true}, -1},
		"while the end is appended":            {childPlan{DieAt: "run.succeeded", DieNumber: 1, DieSent: true}, -1},
		"while the sandbox is appended":        {childPlan{DieAt: "run.sandbox_prepared", DieNumber: 1, DieSent: true}, -1},
		"while the sandbox is being prepared":  {childPlan{DiePrep: 15 * time.Millisecond}, -1},
		"as the sandbox begins to be prepared": {childPlan{DiePrep: 2 * time.Millisecond}, 0},
	}
	for name, point := range points {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			id := b.team.Converse(t, b.d)
			target := b.post(b.team, id, countedScript...)
			point.plan.Name = "doomed"
			doomed := b.spawn(point.plan)
			doomed.killed()
			b.inherit()
			state := b.ends(target, run.StatusSucceeded, 30*time.Second)
			b.counted(state, point.doubt)
		})
	}
}

// inherit starts a worker that soon finds what a dead one left.
func (b *bench) inherit() { b.work("heir", func(o *worker.Options) { o.LeaseTTL = crashTTL }) }

// counted checks that no call was made twice: a line of each, where that of a call in doubt may be missing.
func (b *bench) counted(state run.State, doubt int) {
	b.t.Helper()
	got := outcomes(state)
	lines := strings.Fields(b.file(state, "counter"))
	inDoubt := 0
	for i, outcome := range got {
		switch there := slices.Contains(lines, fmt.Sprint(i+1)); {
		case outcome == "shell:"+run.OutcomeInDoubt:
			inDoubt++
		case outcome != "shell:ok" || !there:
			b.t.Fatalf("outcomes %v, the counter holds %v", got, lines)
		}
	}
	if len(got) != 3 || doubt >= 0 && inDoubt != doubt || inDoubt > 1 {
		b.t.Fatalf("outcomes %v, want %d in doubt", got, doubt)
	}
	if ascending := slices.Compact(slices.Sorted(slices.Values(lines))); !slices.Equal(lines, ascending) {
		b.t.Fatalf("a call was made twice: the counter holds %v after %v", lines, got)
	}
}

func TestWorkerKilledInATool(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.team.Converse(t, b.d)
	target := b.post(b.team, id, "$ echo 1 >> counter", "$ echo 2 >> counter; sleep 600", "$ echo 3 >> counter; cat counter")
	doomed := b.spawn(childPlan{Name: "doomed"})
	b.happens(target, "run.tool_called", 2)
	before := b.state(target)
	b.until(5*time.Second, func() bool { return has(before, "counter", "1\n2\n") }, "the second line")
	doomed.signal(syscall.SIGKILL)
	doomed.killed()
	heir := b.spawn(childPlan{Name: "heir"})
	state := b.ends(target, run.StatusSucceeded, 30*time.Second)
	b.counted(state, 1)
	doubtful := state.Steps[1].Calls[0].Result
	if doubtful.ExitCode != nil || !strings.Contains(doubtful.Output.Text(), "unknown") {
		t.Fatalf("the call in doubt returned %+v %q", doubtful, doubtful.Output.Text())
	}
	if state.Epoch != 2 || state.Sandbox.Upper != before.Sandbox.Upper || b.count(target, "run.worker_lost") != 1 {
		t.Fatalf("epoch %d, upper %s then %s", state.Epoch, before.Sandbox.Upper, state.Sandbox.Upper)
	}
	if got := groups(target); len(got) != 0 {
		t.Fatalf("control groups are left: %v", got)
	}
	heir.signal(syscall.SIGTERM)
	heir.ended(10 * time.Second)
	if code := heir.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("the drained worker ended with %d", code)
	}
}

func TestReadOnlyCallInDoubtIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.team.Converse(t, b.d)
	target := b.post(b.team, id, "write a.txt: hello", "read a.txt")
	b.spawn(childPlan{Name: "doomed", DieAt: "run.tool_returned", DieNumber: 2}).killed()
	b.inherit()
	state := b.ends(target, run.StatusSucceeded, 30*time.Second)
	if got := outcomes(state); !slices.Equal(got, []string{"write:ok", "read:ok"}) || b.count(target, "run.tool_called") != 3 {
		t.Fatalf("outcomes %v, %d calls", got, b.count(target, "run.tool_called"))
	}
	if got := state.Steps[1].Calls[0].Result.Output.Text(); got != "hello" {
		t.Fatalf("read %q", got)
	}
}

// A worker that stands still past its lease keeps the lock of the run's files until it goes on: then it
// finds its claim over, kills what is left of its sandbox, and appends nothing.
func TestFrozenWorkerCannotAppend(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.team.Converse(t, b.d)
	target := b.post(b.team, id, "$ echo 1 >> counter; sleep 600", "$ echo 2 >> counter", "$ echo 3 >> counter")
	frozen := b.spawn(childPlan{Name: "frozen"})
	b.happens(target, "run.tool_called", 1)
	old := b.state(target)
	b.until(5*time.Second, func() bool { return has(old, "counter", "1\n") }, "the first line")
	frozen.signal(syscall.SIGSTOP)

	heir := b.spawn(childPlan{Name: "heir"})
	b.happens(target, "run.started", 2)
	b.until(5*time.Second, func() bool { return len(sandboxed(target, 1)) == 0 }, "the old sandbox to be killed")
	late := run.ReturnTool{Target: target, Epoch: 1, Call: old.Steps[0].Calls[0].ID, Outcome: run.OutcomeOK, Output: "late"}
	_, err := b.d.Execute(t.Context(), late, dbtest.Meta(event.WorkerActor("frozen")))
	if !fault.HasCode(err, "run_fenced") {
		t.Fatalf("an append under the old epoch: %v", err)
	}
	frozen.signal(syscall.SIGCONT)
	state := b.ends(target, run.StatusSucceeded, 30*time.Second)
	b.counted(state, 1)
	records, err := b.d.Stream(t.Context(), target.Run, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	taken := false
	for i := range records {
		taken = taken || records[i].Kind == "run.worker_lost"
		if taken && records[i].Actor == event.WorkerActor("frozen") && records[i].Kind != "run.started" {
			t.Fatalf("the frozen worker appended %s after its claim was taken back", records[i].Kind)
		}
	}
	for _, p := range []*spawned{frozen, heir} {
		p.signal(syscall.SIGTERM)
		p.ended(10 * time.Second)
	}
}

// A worker that cannot reach its lease kills its own sandbox at half the time, before anyone may take over.
func TestWorkerThatCannotRenewStopsItself(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.inherit()
	target := b.post(b.team, b.team.Converse(t, b.d), "$ echo 1 >> counter; sleep 600", "$ echo 2 >> counter", "$ echo 3 >> counter")
	b.happens(target, "run.tool_called", 1)
	old := b.state(target)
	b.until(5*time.Second, func() bool { return has(old, "counter", "1\n") }, "the first line")

	conn := b.base.Conn(t, "")
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE log.lease IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	b.until(crashTTL*3/4, func() bool { return len(sandboxed(target, 1)) == 0 }, "the worker to kill its sandbox")
	t.Logf("killed %s after the last chance to renew", time.Since(begin))
	if state := b.state(target); state.Epoch != 1 || state.Steps[0].Calls[0].State != run.Called {
		t.Fatalf("the worker went on under epoch %d: %v", state.Epoch, outcomes(state))
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.counted(b.ends(target, run.StatusSucceeded, 20*time.Second), 1)
}

// sandboxed lists the processes in the sandbox of one epoch.
func sandboxed(target run.Target, epoch int) []string {
	var pids []string
	for _, folder := range groups(target) {
		if !strings.HasSuffix(folder, fmt.Sprintf("-%d", epoch)) {
			continue
		}
		for _, part := range []string{"", "/payload", "/hand"} {
			content, _ := os.ReadFile(folder + part + "/cgroup.procs")
			pids = append(pids, strings.Fields(string(content))...)
		}
	}
	return pids
}

// A queue that only the lost process served has nobody to go on: its runs fail instead of waiting for ever.
func TestRunOfALocalQueueFailsWithItsProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.converse(conversation.Open{Queue: conversation.LocalQueue + "1"})
	first := b.post(b.team, id, "$ sleep 600")
	second := b.post(b.team, id, "hello")
	doomed := b.spawn(childPlan{Name: "doomed", Queues: []string{conversation.LocalQueue + "1"}})
	b.happens(first, "run.tool_called", 1)
	doomed.signal(syscall.SIGKILL)
	doomed.killed()
	b.inherit()
	for _, target := range []run.Target{first, second} {
		if state := b.ends(target, run.StatusFailed, 20*time.Second); state.Code != run.CodeWorkerLost {
			t.Fatalf("failed with %s", state.Code)
		}
	}
	if left := groups(first); len(left) != 0 {
		t.Fatalf("control groups are left: %v", left)
	}
}
