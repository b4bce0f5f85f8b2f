package worker_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/domain/agent"
	"cairn/domain/conversation"
	"cairn/domain/run"

	"cairn/db/dbtest"
	"cairn/worker"
)

func (b *bench) cancel(target run.Target) {
	b.t.Helper()
	dbtest.Must(b.t, b.d, b.team.Actor(), conversation.CancelRun{Conversation: target.Conversation, Space: target.Space, Run: target.Run})
}

func TestCancelStopsAToolCall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work("one")
	id := b.team.Converse(t, b.d)
	target := b.post(b.team, id, "$ echo begun; sleep 600 & sleep 600")
	next := b.post(b.team, id, "$ cat begun || echo none")
	b.happens(target, "run.tool_called", 1)
	begin := time.Now()
	b.cancel(target)
	state := b.ends(target, run.StatusCancelled, 2*time.Second)
	t.Logf("cancelled after %s", time.Since(begin))
	result := state.Steps[0].Calls[0].Result
	if result.Outcome != run.OutcomeCancelled || !strings.Contains(result.Output.Text(), "cancelled") || result.ExitCode != nil {
		t.Fatalf("the open call returned %+v: %s", result, result.Output.Text())
	}
	if left := groups(target); len(left) != 0 {
		t.Fatalf("control groups are left: %v", left)
	}
	b.ends(next, run.StatusSucceeded, 20*time.Second)
}

func TestCancelStopsAModelCall(t *testing.T) {
	t.Parallel()
	b := newPacedBench(t, 300*time.Millisecond) // the demo model's help takes a minute so
	b.work("one")
	target := b.post(b.team, b.team.Converse(t, b.d), "hello")
	b.happens(target, "run.started", 1)
	time.Sleep(200 * time.Millisecond)
	b.cancel(target)
	state := b.ends(target, run.StatusCancelled, 2*time.Second)
	if len(state.Steps) != 0 {
		t.Fatalf("%d steps are recorded", len(state.Steps))
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work("one")
	start := func(limits agent.AskedLimits, lines ...string) run.Target {
		team := b.agent("demo", limits, agent.Tools()...)
		return b.post(team, b.converse(conversation.Open{Agent: team.Agent}), lines...)
	}
	wall := start(agent.AskedLimits{WallSeconds: ptr(int64(2))}, "$ sleep 600")
	tool := start(agent.AskedLimits{ToolSeconds: ptr(int64(1))}, "$ echo seen; sleep 600", "$ echo after")
	calls := start(agent.AskedLimits{ModelCalls: ptr(int64(2))}, "$ echo 1", "$ echo 2", "$ echo 3")
	output := start(agent.AskedLimits{OutputBytes: ptr(int64(100))}, "$ yes 0123456789 | head -c 1000000; echo the end >&2", "$ printf 'a\\0b\\377c'")

	if state := b.ends(wall, run.StatusFailed, 20*time.Second); state.Code != run.CodeLimitWall || outcomes(state)[0] != "shell:timeout" {
		t.Fatalf("wall: %s %v", state.Code, outcomes(state))
	}
	state := b.ends(tool, run.StatusSucceeded, 20*time.Second)
	if got := outcomes(state); !slices.Equal(got, []string{"shell:timeout", "shell:ok"}) {
		t.Fatalf("tool: %v", got)
	}
	if got := state.Steps[0].Calls[0].Result; got.Output.Text() != "exit code: unknown (timed out after 1 s)\nseen\n" || got.ExitCode != nil {
		t.Fatalf("tool: %q", got.Output.Text())
	}
	if state := b.ends(calls, run.StatusFailed, 20*time.Second); state.Code != run.CodeLimitModelCalls || len(state.Steps) != 2 || !strings.Contains(state.Message.Text(), "2 times") {
		t.Fatalf("calls: %s after %d steps: %s", state.Code, len(state.Steps), state.Message.Text())
	}
	state = b.ends(output, run.StatusSucceeded, 20*time.Second)
	got := state.Steps[0].Calls[0].Result
	if !got.Truncated || got.OutputBytes != 1000008 || len(got.Output.Text()) > 200 || !strings.Contains(got.Output.Text(), "bytes left out") || !strings.HasSuffix(got.Output.Text(), "stderr:\nthe end\n") {
		t.Fatalf("output: %d bytes: %q", got.OutputBytes, got.Output.Text())
	}
	if got := state.Steps[1].Calls[0].Result.Output.Text(); got != "exit code: 0\nab\uFFFDc" {
		t.Fatalf("output: %q", got)
	}
}

func TestDrainHandsRunsOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	drain := b.work("first")
	long := b.post(b.team, b.team.Converse(t, b.d), "$ echo 1 >> counter", "$ echo 2 >> counter; sleep 600", "$ echo 3 >> counter")
	short := b.post(b.team, b.team.Converse(t, b.d), "$ echo 1 >> counter; sleep 0.15", "$ echo 2 >> counter", "$ echo 3 >> counter")
	b.happens(long, "run.tool_called", 2)
	before := b.state(long)
	b.until(5*time.Second, func() bool { return has(before, "counter", "1\n2\n") }, "the second line")
	begin := time.Now()
	drain()
	if took := time.Since(begin); took > 3*time.Second {
		t.Fatalf("draining took %s", took)
	}
	if left := append(groups(long), groups(short)...); len(left) != 0 {
		t.Fatalf("control groups are left: %v", left)
	}
	state := b.state(long)
	if state.Status != run.StatusQueued || b.count(long, "run.released") != 1 || outcomes(state)[1] != "shell:cancelled" {
		t.Fatalf("after the drain: %s %v", state.Status, outcomes(state))
	}
	begin = time.Now()
	b.work("second")
	b.happens(long, "run.started", 2)
	t.Logf("taken over after %s", time.Since(begin))
	state = b.ends(long, run.StatusSucceeded, 10*time.Second)
	if b.file(state, "counter") != "1\n2\n3\n" || state.Epoch != 2 {
		t.Fatalf("counter %q under epoch %d", b.file(state, "counter"), state.Epoch)
	}
	if state := b.ends(short, run.StatusSucceeded, 10*time.Second); b.file(state, "counter") != "1\n2\n3\n" || slices.Contains(outcomes(state), "shell:cancelled") {
		t.Fatalf("a short call was stopped: %v", outcomes(state))
	}
}

// A drain that comes while the model speaks loses its words, not the run.
func TestDrainStopsAModelCall(t *testing.T) {
	t.Parallel()
	b := newPacedBench(t, 20*time.Millisecond)
	drain := b.work("first", func(o *worker.Options) { o.DrainGrace = 50 * time.Millisecond })
	target := b.post(b.team, b.team.Converse(t, b.d), "hello")
	b.happens(target, "run.started", 1)
	drain()
	b.work("second")
	if state := b.ends(target, run.StatusSucceeded, 20*time.Second); len(state.Steps) != 1 || state.Epoch != 2 {
		t.Fatalf("%d steps under epoch %d", len(state.Steps), state.Epoch)
	}
}
