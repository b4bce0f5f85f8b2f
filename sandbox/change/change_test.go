package change

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("needs root, to make whiteouts")
		}
		t.Skip("needs root, to make whiteouts")
	}
}

// tree writes files: "x/" is a folder, "x ->target" a link, "x !" a whiteout, "x/ opaque" an opaque folder, "x 0755" a
// program, "x |" a pipe; everything else is a file whose content follows.
func tree(t *testing.T, entries map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for key, content := range entries {
		name, mark, _ := strings.Cut(key, " ")
		path := filepath.Join(dir, name)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case mark == "!":
			must(unix.Mknod(path, unix.S_IFCHR, 0))
		case mark == "|":
			must(unix.Mkfifo(path, 0o644))
		case mark == "->":
			must(os.Symlink(content, path))
		case strings.HasSuffix(name, "/"):
			must(os.MkdirAll(path, 0o755))
			if mark == "opaque" {
				must(unix.Setxattr(path, "user.overlay.opaque", []byte("y"), 0))
			}
		default:
			must(os.WriteFile(path, []byte(content), 0o644))
			if mark == "0755" {
				must(os.Chmod(path, 0o755))
			}
		}
	}
	return dir
}

// said is a set in short.
func said(s Set) []string {
	var all []string
	for _, c := range s.Changes {
		text := string(c.Kind) + " " + c.Path
		if c.OldPath != "" {
			text += " <- " + c.OldPath
		}
		if c.Added != nil {
			text += fmt.Sprintf(" +%d-%d", *c.Added, *c.Removed)
		}
		if c.Binary {
			text += " binary"
		}
		all = append(all, text)
	}
	return all
}

func TestChanges(t *testing.T) {
	needRoot(t)
	cases := []struct {
		name   string
		upper  map[string]string
		lowers []map[string]string
		want   []string
	}{
		{"nothing", nil, nil, nil},
		{"no layer beneath", map[string]string{"a": "1\n", "d/b": "2\n3\n", "e/": ""}, nil, []string{"added a +1-0", "added d/b +2-0", "added e"}},
		{"edited, added, deleted", map[string]string{"a": "1\nX\n", "b": "new", "c !": ""}, []map[string]string{{"a": "1\n2\n", "c": "3\n", "d": "4"}}, []string{"modified a +1-1", "added b +1-0", "deleted c +0-1"}},
		{"touched only", map[string]string{"a": "same", "l ->": "x"}, []map[string]string{{"a": "same", "l ->": "x"}}, nil},
		{"mode", map[string]string{"a 0755": "same"}, []map[string]string{{"a": "same"}}, []string{"mode a"}},
		{"folder deleted", map[string]string{"d !": ""}, []map[string]string{{"d/a": "1", "d/e/b": "2", "d/f/": ""}}, []string{"deleted d/a +0-1", "deleted d/e/b +0-1", "deleted d/f"}},
		{"folder deleted and made again", map[string]string{"d/ opaque": "", "d/a": "1", "d/new": "n"}, []map[string]string{{"d/a": "1", "d/old": "o", "d/e/f": "x"}}, []string{"deleted d/e/f +0-1", "added d/new +1-0", "deleted d/old +0-1"}},
		{"two layers", map[string]string{"a": "3"}, []map[string]string{{"a": "2", "b !": "", "d/ opaque": "", "d/x": "x"}, {"a": "1", "b": "b", "d/y": "y"}}, []string{"modified a +1-1"}},
		{"gone in a lower already", map[string]string{"b !": "", "d !": "", "x": "again"}, []map[string]string{{"b !": "", "d/ opaque": "", "d/x": "x", "x !": ""}, {"b": "b", "d/y": "y", "x": "1"}}, []string{"deleted d/x +0-1", "added x +1-0"}},
		{"file hides a folder of a lower layer", map[string]string{"f !": ""}, []map[string]string{{"f": "file"}, {"f/inside": "1"}}, []string{"deleted f +0-1"}},
		{"renamed", map[string]string{"new/name": "the same text\n", "old !": ""}, []map[string]string{{"old": "the same text\n"}}, []string{"renamed new/name <- old"}},
		{"renamed twice, empty files are not", map[string]string{"a !": "", "b !": "", "c": "x", "d": "x", "e !": "", "f": ""}, []map[string]string{{"a": "x", "b": "x", "e": ""}}, []string{"renamed c <- a", "renamed d <- b", "deleted e +0-0", "added f +0-0"}},
		{"type", map[string]string{"a ->": "/etc/shadow", "d": "file", "f/x": "1"}, []map[string]string{{"a": "1", "d/x": "2", "d/y": "3", "f": "4"}}, []string{"type a", "type d", "deleted d/x +0-1", "deleted d/y +0-1", "type f", "added f/x +1-0"}},
		{"link", map[string]string{"l ->": "b", "n ->": "/etc/passwd"}, []map[string]string{{"l ->": "a"}}, []string{"modified l", "added n"}},
		{"binary", map[string]string{"a": "x\x00y", "b": "\xff\xfe", "c": "t"}, []map[string]string{{"a": "text", "c": "\x00"}}, []string{"modified a binary", "added b binary", "modified c binary"}},
		{"pipes are not opened", map[string]string{"p |": "", "q |": ""}, []map[string]string{{"q": "was a file"}}, []string{"added p", "type q"}},
		{"odd names", map[string]string{"a\nb": "1", "\xff": "2", "-rf": "3"}, nil, []string{`added "\xff" +1-0`, `added "a\nb" +1-0`, "added -rf +1-0"}},
		{"a whiteout of nothing", map[string]string{"x !": "", "d/y !": ""}, nil, []string{"added d"}},
	}
	for _, c := range cases {
		var lowers []string
		for _, l := range c.lowers {
			lowers = append(lowers, tree(t, l))
		}
		set, err := Of(t.Context(), tree(t, c.upper), lowers, Limits{})
		if got := said(set); err != nil || set.Truncated || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v %v\n got %q\nwant %q", c.name, err, set.Truncated, got, c.want)
		}
	}
}

// TestHostileUppers: links lead nowhere, also as folders on the way; bounds hold.
func TestHostileUppers(t *testing.T) {
	needRoot(t)
	secret := tree(t, map[string]string{"shadow": "root:secret"})
	upper := tree(t, map[string]string{"link ->": filepath.Join(secret, "shadow"), "folder ->": secret, "loop ->": "loop"})
	lower := tree(t, map[string]string{"link": "1", "folder/shadow": "2", "loop/x": "3"})
	set, err := Of(t.Context(), upper, []string{lower}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range set.Changes {
		if strings.Contains(c.Diff, "secret") {
			t.Errorf("%s shows what a link leads to: %s", c.Path, c.Diff)
		}
	}
	if got, want := said(set), []string{"type folder", "deleted folder/shadow +0-1", "type link", "type loop", "deleted loop/x +0-1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// The same the other way round: an earlier turn left links where this one has folders.
	set, err = Of(t.Context(), tree(t, map[string]string{"folder/shadow !": "", "folder/x": "1"}), []string{tree(t, map[string]string{"folder ->": secret})}, Limits{})
	if got, want := said(set), []string{"type folder", "added folder/x +1-0"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: got %q, want %q", err, got, want)
	}

	many := map[string]string{}
	for i := range 50 {
		many[fmt.Sprintf("f%02d", i)] = strings.Repeat(fmt.Sprintln("line", i), 100)
	}
	full := tree(t, many)
	for name, l := range map[string]Limits{"changes": {Changes: 10}, "entries": {Entries: 10}, "diff": {Diff: 100}, "diffs": {Diffs: 1000}} {
		set, err := Of(t.Context(), full, nil, l)
		total := 0
		for _, c := range set.Changes {
			total += len(c.Diff)
		}
		if err != nil || !set.Truncated || l.Changes > 0 && (len(set.Changes) != 10 || set.Counts[Added] != 50) || l.Diffs > 0 && total > 1000 {
			t.Errorf("%s: %v, truncated %v, %d changes, %d bytes", name, err, set.Truncated, len(set.Changes), total)
		}
	}
	deep := t.TempDir()
	if err := os.MkdirAll(filepath.Join(deep, strings.Repeat("d/", 200)), 0o755); err != nil {
		t.Fatal(err)
	}
	if set, err := Of(t.Context(), deep, nil, Limits{}); err != nil || !set.Truncated {
		t.Errorf("deep: %v %v", err, set.Truncated)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Of(ended, full, nil, Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
}

// TestLargeFilesAreNotRead into memory, and not compared by lines.
func TestLargeFilesAreNotRead(t *testing.T) {
	needRoot(t)
	upper, lower := t.TempDir(), t.TempDir()
	for _, dir := range []string{upper, lower} {
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(strings.Repeat("text\n", 1<<20)+dir), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set, err := Of(t.Context(), upper, []string{lower}, Limits{})
	if err != nil || len(set.Changes) != 1 || set.Changes[0].Kind != Modified || set.Changes[0].Added != nil || set.Changes[0].Binary {
		t.Errorf("%v %+v", err, set)
	}
	set, err = Of(t.Context(), upper, []string{lower}, Limits{HashSize: 1 << 20})
	if err != nil || !set.Truncated || len(set.Changes) != 1 {
		t.Errorf("beyond what may be read: %v %+v", err, set)
	}
}
