package worker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cairn/db/dbtest"
	"cairn/domain/agent"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
	"cairn/sandbox"
	"cairn/server/gateway"
	"cairn/worker"
)

func TestSandboxIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	root, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	b.work("one", func(o *worker.Options) { o.Roots = map[string]string{"work": root} })
	folder := func(root, path string) conversation.Open {
		return conversation.Open{Source: run.Source{Kind: run.SourceFolder, Root: root, Path: path}}
	}
	cases := map[string]conversation.Open{
		`root "other" is not offered`: folder("other", root),
		"not inside":                  folder("work", outside),
		"it leads to":                 folder("work", filepath.Join(root, "link")),
		"no such file":                folder("work", filepath.Join(root, "gone")),
		"add --tool /usr/lib":         {Mounts: []run.Mount{{Source: "/usr/lib", Target: "/opt/lib"}}},
	}
	for want, open := range cases {
		state := b.ends(b.post(b.team, b.converse(open), "$ echo no"), run.StatusFailed, 20*time.Second)
		if state.Code != run.CodeSandboxRefused || !strings.Contains(state.Message.Text(), want) {
			t.Errorf("%s: %q, want %q", state.Code, state.Message.Text(), want)
		}
	}
}

func TestMissingControlIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work("one", func(o *worker.Options) {
		o.Sandboxes = sandbox.NewNative(sandbox.Options{HandPath: handProgram, SlotDir: testSlots(), Parent: testParent, UIDBase: 50})
	})
	// Uppers are stored under ids of the base: this folder was made under another one.
	target := b.post(b.team, b.team.Converse(t, b.d), "$ echo no")
	upper := filepath.Join(b.data, "run", target.Run.String(), "upper")
	if err := os.MkdirAll(filepath.Join(upper, "something"), 0o755); err != nil {
		t.Fatal(err)
	}
	state := b.ends(target, run.StatusFailed, 20*time.Second)
	if state.Code != run.CodeSandboxRefused || !strings.Contains(state.Message.Text(), "control ") || !strings.Contains(state.Message.Text(), "fix: ") {
		t.Fatalf("%s: %s", state.Code, state.Message.Text())
	}
}

func TestWorkspaceThatIsGoneFailsTheRun(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(run.State, *worker.Options){
		"other host": func(_ run.State, o *worker.Options) { o.Host = "other-host" },
		"no upper":   func(s run.State, _ *worker.Options) { os.RemoveAll(filepath.Dir(s.Sandbox.Upper)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			id := b.team.Converse(t, b.d)
			first := b.post(b.team, id, "$ echo 1 >> counter; sleep 600")
			doomed := b.spawn(childPlan{Name: "doomed"})
			b.happens(first, "run.tool_called", 1)
			doomed.signal(syscall.SIGKILL)
			doomed.killed()
			b.work("heir", func(o *worker.Options) {
				o.LeaseTTL = crashTTL
				lose(b.state(first), o)
			})
			state := b.ends(first, run.StatusFailed, 20*time.Second)
			if state.Code != run.CodeWorkspaceLost || !strings.Contains(state.Message.Text(), "start a new conversation") {
				t.Fatalf("%s: %s", state.Code, state.Message.Text())
			}
			if name == "no upper" && len(groups(first)) != 0 {
				t.Fatalf("control groups are left: %v", groups(first))
			}
			for _, left := range groups(first) { // the other host's own worker would
				os.Remove(filepath.Join(left, "payload"))
				os.Remove(filepath.Join(left, "hand"))
				os.Remove(left)
			}
		})
	}
}

func TestMissingBlob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.team.Converse(t, b.d)
	long := strings.Repeat("a long message ", 4000)
	stop := b.work("one")
	first := b.post(b.team, id, long)
	b.ends(first, run.StatusSucceeded, 20*time.Second)
	second := b.hidden(first, func() run.Target {
		stop()
		target := b.post(b.team, id, "hello")
		stop = b.work("two") // with a cache of its own, that never saw the text
		b.until(20*time.Second, func() bool { return b.state(target).Status.Terminal() }, "the run to end")
		return target
	})
	state := b.ends(second, run.StatusFailed, time.Second)
	if state.Code != run.CodeContentMissing || !strings.Contains(state.Message.Text(), "restore the blob folder") {
		t.Fatalf("%s: %s", state.Code, state.Message.Text())
	}
	stop()

	// A run whose own message is missing cannot even be claimed: nothing is appended, and its job rests.
	target := b.post(b.team, b.team.Converse(t, b.d), long)
	conn := b.base.Conn(t, "")
	b.hidden(target, func() run.Target {
		b.work("three")
		b.until(10*time.Second, func() bool {
			var resting int
			err := conn.QueryRow(t.Context(), "SELECT count(*) FROM river_job WHERE state = 'scheduled' AND args->>'run' = $1", target.Run.String()).Scan(&resting)
			return err == nil && resting == 1
		}, "the job to rest")
		return target
	})
	if b.count(target, "run.started") != 0 || !strings.Contains(b.log.String(), "restore the blob folder") {
		t.Fatal("a run that cannot be read was claimed, or nobody said why not")
	}
	if _, err := conn.Exec(t.Context(), "UPDATE river_job SET scheduled_at = now(), state = 'available' WHERE state = 'scheduled'"); err != nil {
		t.Fatal(err) // instead of 30 s
	}
	b.ends(target, run.StatusSucceeded, 20*time.Second)
}

// hidden takes the blob of a run's prompt away while something is done.
func (b *bench) hidden(target run.Target, do func() run.Target) run.Target {
	b.t.Helper()
	records, err := b.d.Stream(b.t.Context(), target.Run, 0, 1)
	if err != nil {
		b.t.Fatal(err)
	}
	var queued struct{ Prompt event.Box }
	if err := json.Unmarshal(records[0].Data, &queued); err != nil || queued.Prompt.Blob == "" {
		b.t.Fatalf("the prompt is in no blob: %v", err)
	}
	path := filepath.Join(b.base.BlobDir, queued.Prompt.Blob[:2], queued.Prompt.Blob[2:])
	if err := os.Rename(path, path+".hidden"); err != nil {
		b.t.Fatal(err)
	}
	done := do()
	if err := os.Rename(path+".hidden", path); err != nil {
		b.t.Fatal(err)
	}
	return done
}

func TestErasedSpaceEndsItsRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work("one")
	target := b.post(b.team, b.team.Converse(t, b.d), "$ echo secret; sleep 600")
	b.happens(target, "run.tool_called", 1)
	dbtest.Must(t, b.d, b.team.Actor(), space.Erase{Space: b.team.Space, Claim: b.spaceClaim()})
	state := b.ends(target, run.StatusFailed, 20*time.Second)
	if state.Code != run.CodeContentErased || !state.Message.IsZero() {
		t.Fatalf("%s %v", state.Code, state.Message)
	}
}

func (b *bench) spaceClaim() event.ID {
	b.t.Helper()
	value, _, err := b.d.Load(b.t.Context(), space.Stream(b.team.Space))
	if err != nil {
		b.t.Fatal(err)
	}
	return value.(space.State).Claim
}

// scripted is a provider that answers by script, one entry for each call; after them it says that it is done.
func scripted(t *testing.T, answers ...string) gateway.Model {
	t.Helper()
	asked := make(chan int, 1)
	asked <- 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := <-asked
		asked <- n + 1
		delta := `{"content":"Done."}`
		if n < len(answers) {
			delta = answers[n]
		}
		if delta == "cut" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lost words\"}}]}\n\n")
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", delta)
	}))
	t.Cleanup(server.Close)
	return gateway.Model{
		Name: "scripted", Protocol: gateway.ProtocolOpenAIChat, BaseURL: server.URL + "/v1", Upstream: "scripted",
		Timeout: 10 * time.Second, Idle: 5 * time.Second,
	}
}

func call(id, name, arguments string) string {
	return fmt.Sprintf(`{"tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, id, name, arguments)
}

func TestModelThatErrsIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, scripted(t,
		call("same", "shell", `{"command":`), call("same", "shell", `{"cmd":"ls"}`), call("same", "no such tool!", `{}`),
		"cut", call("same", "edit", `{"path":"x","old":"a","new":"b"}`), call("same", "grep", `{"pattern":"("}`)))
	b.work("one")
	team := b.agent("scripted", agent.AskedLimits{}, agent.Shell, agent.Edit, agent.Grep)
	state := b.ends(b.post(team, b.converse(conversation.Open{Agent: team.Agent}), "go"), run.StatusSucceeded, 20*time.Second)
	want := []string{"shell:error", "shell:error", "no_such_tool_:error", "edit:error", "grep:error"}
	if got := outcomes(state); !slices.Equal(got, want) || state.Answer.Text() != "Done." {
		t.Fatalf("outcomes %v, answer %q", got, state.Answer.Text())
	}
	for i, word := range []string{"not valid JSON", `unknown field "cmd"`, "there is no tool", "not_found", "bad_pattern"} {
		if got := state.Steps[i].Calls[0].Result.Output.Text(); !strings.Contains(got, word) {
			t.Errorf("step %d was told %q, want %q", i+1, got, word)
		}
		if id := state.Steps[i].Calls[0].ID; id != fmt.Sprintf("call_%d_0", i+1) {
			t.Errorf("step %d has the call %s", i+1, id)
		}
	}
}

func TestModelThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t, scripted(t, "cut", "cut", "cut"))
	b.work("one", func(o *worker.Options) { o.ModelAttempts = 3 })
	cut := b.agent("scripted", agent.AskedLimits{})
	unknown := b.agent("nobody", agent.AskedLimits{})
	state := b.ends(b.post(cut, b.converse(conversation.Open{Agent: cut.Agent}), "go"), run.StatusFailed, 20*time.Second)
	if state.Code != run.CodeModelUnavailable || !strings.Contains(state.Message.Text(), "3 attempts") {
		t.Fatalf("%s: %s", state.Code, state.Message.Text())
	}
	state = b.ends(b.post(unknown, b.converse(conversation.Open{Agent: unknown.Agent}), "go"), run.StatusFailed, 20*time.Second)
	if state.Code != run.CodeModelRefused || !strings.Contains(state.Message.Text(), "nobody") {
		t.Fatalf("%s: %s", state.Code, state.Message.Text())
	}
}

// TestDiskLimitEndsTheRun: the watchdog ends the sandbox, and the run with it: another worker would only fill the
// disk again. What was reached and what was used is in the log.
func TestDiskLimitEndsTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work("one", func(o *worker.Options) { o.SandboxLimits.Disk = 4 << 20 })
	target := b.post(b.team, b.team.Converse(t, b.d), "$ head -c 9000000 /dev/urandom > big; sleep 60", "$ echo no")
	state := b.ends(target, run.StatusFailed, 30*time.Second)
	if state.Code != run.CodeLimitDisk || !strings.Contains(state.Message.Text(), "4194304") {
		t.Errorf("%s: %q", state.Code, state.Message.Text())
	}
	var hit *run.LimitReached
	var closed *run.SandboxClosed
	for _, e := range b.events(target) {
		switch e := e.(type) {
		case run.LimitReached:
			hit = &e
		case run.SandboxClosed:
			closed = &e
		}
	}
	if hit == nil || hit.Limit != "disk" || hit.By != "watchdog" || hit.Call == nil || hit.Measured == nil || *hit.Measured <= hit.Allowed {
		t.Errorf("limit event %+v", hit)
	}
	if closed == nil || closed.OverLimit == nil || *closed.OverLimit != "disk" || closed.Usage.CPUUS == nil || *closed.Usage.DiskBytes < 4<<20 || len(closed.Unknown) > 0 {
		t.Errorf("closing event %+v", closed)
	}
}
