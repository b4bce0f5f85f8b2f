package worker_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn/domain/conversation"
	"cairn/domain/run"
	"cairn/worker"
	"cairn/worker/harness"
)

func TestPromptIsWorkedOnFilesOfAFolder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	root := t.TempDir()
	source := filepath.Join(root, "project")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "in.txt"), []byte("from the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var deltas atomic.Int64
	b.work("one", func(o *worker.Options) {
		o.Roots = map[string]string{"work": root}
		o.Tools = []string{"/usr/local/go"}
		o.OnDelta = func(d harness.Delta) {
			if d.Text != "" && d.Epoch == 1 && d.Attempt == 1 {
				deltas.Add(1)
			}
		}
	})
	id := b.converse(conversation.Open{
		Source: run.Source{Kind: run.SourceFolder, Root: "work", Path: source},
		Mounts: []run.Mount{{Source: "/usr/local/go", Target: "/usr/local/go"}},
	})
	target := b.post(b.team, id, "$ cat in.txt", "write NOTE.md: hello", "read NOTE.md", "$ go version; exit 3", "$ rm in.txt")
	state := b.ends(target, run.StatusSucceeded, 20*time.Second)

	if got, want := outcomes(state), []string{"shell:ok", "write:ok", "read:ok", "shell:ok", "shell:ok"}; !slices.Equal(got, want) {
		t.Fatalf("outcomes %v, want %v", got, want)
	}
	if got := state.Steps[0].Calls[0].Result.Output.Text(); got != "exit code: 0\nfrom the host\n" {
		t.Fatalf("shell returned %q", got)
	}
	last := state.Steps[3].Calls[0].Result
	if *last.ExitCode != 3 || !strings.Contains(last.Output.Text(), "go version go1.") {
		t.Fatalf("tool chain: exit %d: %s", *last.ExitCode, last.Output.Text())
	}
	if !strings.Contains(state.Answer.Text(), "5 of 5 steps") || deltas.Load() == 0 {
		t.Fatalf("answer %q, %d deltas", state.Answer.Text(), deltas.Load())
	}
	if b.file(state, "NOTE.md") != "hello" {
		t.Fatal("the note is not in the upper layer")
	}
	if _, err := os.Stat(filepath.Join(source, "in.txt")); err != nil {
		t.Fatalf("the source was changed: %v", err)
	}
	if left := groups(target); len(left) > 0 {
		t.Fatalf("control groups are left: %v", left)
	}
	var prepared run.SandboxPrepared
	for _, e := range b.events(target) {
		if p, ok := e.(run.SandboxPrepared); ok {
			prepared = p
		}
	}
	if prepared.Grade == nil || *prepared.Grade != "C" || !strings.Contains(string(prepared.Report), `"controls"`) || prepared.Reattached {
		t.Fatalf("sandbox event %+v", prepared)
	}

	// The conversation's workspace goes on, with what was removed removed; a failed or cancelled turn adds nothing.
	second := b.ends(b.post(b.team, id, "$ ls", "$ mkdir d; echo 2 > d/two; echo more >> NOTE.md"), run.StatusSucceeded, 20*time.Second)
	if got := second.Steps[0].Calls[0].Result.Output.Text(); got != "exit code: 0\nNOTE.md\n" {
		t.Fatalf("second turn sees %q", got)
	}
	third := b.ends(b.post(b.team, id, "$ cat NOTE.md d/two; rm -r d; mkdir d; ls d"), run.StatusSucceeded, 20*time.Second)
	if got := third.Steps[0].Calls[0].Result.Output.Text(); got != "exit code: 0\nhellomore\n2\n" {
		t.Fatalf("third turn sees %q", got)
	}
	fourth := b.ends(b.post(b.team, id, "$ ls d; echo end"), run.StatusSucceeded, 20*time.Second)
	if got := fourth.Steps[0].Calls[0].Result.Output.Text(); got != "exit code: 0\nend\n" {
		t.Fatalf("fourth turn sees %q in the folder that the third emptied", got)
	}
}
