package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
)

// changes are those that the run recorded: totals, and each change in short with its diff.
func (b *bench) changes(target run.Target) (run.ChangesRecorded, []string, map[string]string) {
	b.t.Helper()
	var recorded []run.ChangesRecorded
	for _, e := range b.events(target) {
		if c, ok := e.(run.ChangesRecorded); ok {
			recorded = append(recorded, c)
		}
	}
	if len(recorded) != 1 {
		b.t.Fatalf("%d lists of changes, want one", len(recorded))
	}
	var items []run.FileChange
	if at := recorded[0].Items; at != nil {
		if err := json.Unmarshal(b.content(*at), &items); err != nil {
			b.t.Fatal(err)
		}
	}
	var all []string
	diffs := map[string]string{}
	for _, i := range items {
		text := i.Change + " " + i.Path
		if i.LinesAdded != nil {
			text += fmt.Sprintf(" +%d-%d", *i.LinesAdded, *i.LinesRemoved)
		}
		all = append(all, text)
		if i.Diff {
			diffs[i.Path] = string(b.content(*recorded[0].Diffs)[i.DiffAt : i.DiffAt+i.DiffSize])
		}
	}
	return recorded[0], all, diffs
}

func (b *bench) content(c event.Content) []byte {
	b.t.Helper()
	raw, err := b.d.ReadContent(context.Background(), b.team.Space, c, 64<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	return raw
}

// TestChangesAreRecorded: each run's own, against what it began with, whatever its outcome.
func TestChangesAreRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work("one")
	id := b.converse(conversation.Open{Source: b.pinned(map[string]string{"a.txt": "1\n2\n3\n", "b/c.txt": "c\n", "keep": "k\n", "move": "moved\n"})})
	first := b.post(b.team, id, "$ sed -i s/2/two/ a.txt; rm -r b; echo new > new.txt; mv move moved; chmod 755 keep; ln -s /etc/shadow link")
	b.ends(first, run.StatusSucceeded, 60*time.Second)
	recorded, items, diffs := b.changes(first)
	want := []string{"modified a.txt +1-1", "deleted b/c.txt +0-1", "mode keep", "added link", "renamed moved", "added new.txt +1-0"}
	if !slices.Equal(items, want) || recorded.Truncated || recorded.Totals != (run.ChangeTotals{Files: 6, Added: 2, Modified: 1, Deleted: 1, Renamed: 1, Mode: 1, LinesAdded: 2, LinesRemoved: 2}) {
		t.Errorf("got %q\nwant %q\n%+v", items, want, recorded)
	}
	if diff := "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"; diffs["a.txt"] != diff {
		t.Errorf("diff %q, want %q", diffs["a.txt"], diff)
	}

	second := b.post(b.team, id, "$ echo 4 >> a.txt; echo again > new.txt; mkdir b; echo c > b/c.txt")
	b.ends(second, run.StatusSucceeded, 60*time.Second)
	_, items, diffs = b.changes(second)
	if want := []string{"modified a.txt +1-0", "added b/c.txt +1-0", "modified new.txt +1-1"}; !slices.Equal(items, want) || !strings.Contains(diffs["a.txt"], " two\n") {
		t.Errorf("the second turn: got %q, want %q; %q", items, want, diffs["a.txt"])
	}

	third := b.post(b.team, id, "$ echo half > half; sleep 600")
	b.happens(third, "run.tool_called", 1)
	b.until(60*time.Second, func() bool { return has(b.state(third), "half", "half\n") }, "the file")
	b.cancel(third)
	b.ends(third, run.StatusCancelled, 60*time.Second)
	if _, items, _ = b.changes(third); !slices.Equal(items, []string{"added half +1-0"}) {
		t.Errorf("a cancelled turn: %q", items)
	}

	fourth := b.post(b.team, id, "nothing to do")
	b.ends(fourth, run.StatusSucceeded, 60*time.Second)
	if n := b.state(fourth).ChangesEpoch; n != 0 {
		t.Errorf("a run without a sandbox has changes")
	}
	fifth := b.post(b.team, id, "$ true")
	b.ends(fifth, run.StatusSucceeded, 60*time.Second)
	if recorded, items, _ = b.changes(fifth); len(items) != 0 || recorded.Items != nil || recorded.Totals.Files != 0 {
		t.Errorf("a run that changed nothing: %+v", recorded)
	}
}
