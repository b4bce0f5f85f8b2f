package worker_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/db/dbtest"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/file"
	"cairn/domain/run"
	"cairn/worker"
)

// pinned stores contents by path and answers a source of them, as the REST interface makes it.
func (b *bench) pinned(contents map[string]string) run.Source {
	b.t.Helper()
	var m file.Manifest
	for path, text := range contents {
		stored, err := b.d.StoreContent(context.Background(), b.team.Space, strings.NewReader(text), file.MaxBytes)
		if err != nil {
			b.t.Fatal(err)
		}
		m.Files = append(m.Files, file.Entry{Path: path, Digest: stored.Digest, Content: stored.Content, Executable: strings.HasPrefix(text, "#!")})
	}
	raw, err := m.Encode(b.team.Space)
	if err != nil {
		b.t.Fatal(err)
	}
	stored, err := b.d.StoreSame(context.Background(), b.team.Space, raw)
	if err != nil {
		b.t.Fatal(err)
	}
	return run.Source{Kind: run.SourceFiles, Files: run.Files{Folder: event.Seal("docs"), Manifest: stored.Content, Count: int64(len(m.Files)), Bytes: m.Bytes()}}
}

// layers are what lies in the folder of layers, without locks.
func (b *bench) layers() []string {
	b.t.Helper()
	all, err := filepath.Glob(filepath.Join(b.data, "layer", "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	hidden, _ := filepath.Glob(filepath.Join(b.data, "layer", ".new*"))
	var layers []string
	for _, path := range append(all, hidden...) {
		if !strings.HasSuffix(path, ".lock") {
			layers = append(layers, filepath.Base(path))
		}
	}
	return layers
}

// TestWorkersLayOutOneManifestAtOnce: many runs of two workers begin with the same files at the same moment.
func TestWorkersLayOutOneManifestAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	source := b.pinned(map[string]string{"a.txt": "A\n", "bin/tool": "#!/bin/sh\necho tool\n", "ä/ö ü": strings.Repeat("x", 200_000)})
	b.work("one")
	b.work("two", func(o *worker.Options) { o.Name = "two" })
	var all sync.WaitGroup
	targets := make([]run.Target, 6)
	for i := range targets {
		all.Go(func() {
			targets[i] = b.post(b.team, b.converse(conversation.Open{Source: source}), "$ cat a.txt; bin/tool; wc -c < 'ä/ö ü'; stat -c '%a %U' a.txt bin/tool", "$ echo changed > a.txt; rm -r bin")
		})
	}
	all.Wait()
	for _, target := range targets {
		state := b.ends(target, run.StatusSucceeded, 60*time.Second)
		if got, want := state.Steps[0].Calls[0].Result.Output.Text(), "exit code: 0\nA\ntool\n200000\n644 agent\n755 agent\n"; got != want {
			t.Errorf("a run sees %q, want %q", got, want)
		}
	}
	if got := b.layers(); len(got) != 1 || got[0] != source.Files.Manifest.Blob {
		t.Errorf("layers %v, want the one of the manifest", got)
	}
	if raw, err := os.ReadFile(filepath.Join(b.data, "layer", source.Files.Manifest.Blob, "a.txt")); err != nil || string(raw) != "A\n" {
		t.Errorf("the layer was changed: %q %v", raw, err)
	}
}

// TestHalfALayerIsNotUsed: what a killed worker left beside is removed, and files that are not those of the manifest
// fail the run.
func TestHalfALayerIsNotUsed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	source := b.pinned(map[string]string{"a.txt": "A\n"})
	beside := filepath.Join(b.data, "layer", ".new-"+source.Files.Manifest.Blob)
	if err := os.MkdirAll(filepath.Join(beside, "half"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.work("one")
	state := b.ends(b.post(b.team, b.converse(conversation.Open{Source: source}), "$ ls"), run.StatusSucceeded, 60*time.Second)
	if got := state.Steps[0].Calls[0].Result.Output.Text(); got != "exit code: 0\na.txt\n" {
		t.Errorf("the run sees %q", got)
	}

	// Another list names content that is not there, and one whose bytes were changed.
	for name, spoil := range map[string]func(path string) error{
		"missing": os.Remove,
		"altered": func(path string) error { return os.WriteFile(path, []byte("something else"), 0o600) },
	} {
		stored, err := b.d.StoreContent(t.Context(), b.team.Space, strings.NewReader(name), 100)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := file.Manifest{Files: []file.Entry{{Path: "x", Digest: stored.Digest, Content: stored.Content}}}.Encode(b.team.Space)
		if err != nil {
			t.Fatal(err)
		}
		list, err := b.d.StoreSame(t.Context(), b.team.Space, raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(filepath.Join(b.base.BlobDir, stored.Content.Blob[:2], stored.Content.Blob[2:])); err != nil {
			t.Fatal(err)
		}
		bad := run.Source{Kind: run.SourceFiles, Files: run.Files{Manifest: list.Content, Count: 1}}
		state := b.ends(b.post(b.team, b.converse(conversation.Open{Source: bad}), "$ ls"), run.StatusFailed, 60*time.Second)
		if state.Code != run.CodeContentMissing || !strings.Contains(state.Message.Text(), "blob_"+name) && !strings.Contains(state.Message.Text(), name) {
			t.Errorf("%s: %s %s", name, state.Code, state.Message.Text())
		}
	}
	if got := b.layers(); len(got) != 1 {
		t.Errorf("layers %v, want the whole one alone", got)
	}
	foreign := source
	foreign.Files.Manifest.Key = dbtest.NewTeam(t, b.d, "demo").Space
	state = b.ends(b.post(b.team, b.converse(conversation.Open{Source: foreign}), "$ ls"), run.StatusFailed, 60*time.Second)
	if state.Code != run.CodeContentMissing {
		t.Errorf("a list of another space: %s %s", state.Code, state.Message.Text())
	}
}

// TestFolderBelowARoot takes relative paths, and does not say where on the host a root is.
func TestFolderBelowARoot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	root, outside := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "a", "b", "in.txt"), []byte("here\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	b.work("one", func(o *worker.Options) { o.Roots = map[string]string{"work": root} })
	for path, want := range map[string]string{"": "a\nout\n", "a/b": "in.txt\n"} {
		open := conversation.Open{Source: run.Source{Kind: run.SourceFolder, Root: "work", Path: path}}
		state := b.ends(b.post(b.team, b.converse(open), "$ ls"), run.StatusSucceeded, 60*time.Second)
		if got := state.Steps[0].Calls[0].Result.Output.Text(); got != "exit code: 0\n"+want {
			t.Errorf("%q: %q", path, got)
		}
	}
	for _, path := range []string{"out", "gone"} {
		open := conversation.Open{Source: run.Source{Kind: run.SourceFolder, Root: "work", Path: path}}
		state := b.ends(b.post(b.team, b.converse(open), "$ ls"), run.StatusFailed, 60*time.Second)
		if text := state.Message.Text(); state.Code != run.CodeSandboxRefused || strings.Contains(text, root) || strings.Contains(text, outside) {
			t.Errorf("%q: %s %s", path, state.Code, text)
		}
	}
}
