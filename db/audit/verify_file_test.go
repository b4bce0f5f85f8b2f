package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"cairn/db/audit"
)

func cutSql(size int64) string { return fmt.Sprintf(cutSigned, size) }

// The file is evidence: what is changed in it is found, but for the one line that a crash may cost.
func TestTamperFile(t *testing.T) {
	f := newFixture(t)
	lines := bytes.Split(f.pristine, []byte("\n"))[1:]
	if len(lines) != len(f.sizes) {
		t.Fatalf("%d lines", len(lines))
	}
	join := func(lines ...[]byte) []byte { return bytes.Join(append([][]byte{nil}, lines...), []byte("\n")) }
	edit := func(n int, old, to string) []byte {
		edited := bytes.Clone(f.pristine)
		return bytes.Replace(edited, lines[n], bytes.Replace(lines[n], []byte(old), []byte(to), 1), 1)
	}
	for name, c := range map[string]struct {
		position int64 // 0: none
		what     string
		file     []byte
	}{
		"truncated by two":     {f.sizes[3], "lacks 2 checkpoints", join(lines[:3]...)},
		"emptied":              {f.sizes[0], "lacks 5 checkpoints", nil},
		"line removed":         {f.sizes[2], "lacks 1 checkpoints", join(lines[0], lines[1], lines[3], lines[4])},
		"first line removed":   {f.sizes[0], "lacks 1 checkpoints", join(lines[1:]...)},
		"size edited":          {0, "line 3 of the checkpoint file", edit(1, fmt.Sprintf("\\n%d\\n", f.sizes[1]), fmt.Sprintf("\\n%d\\n", f.sizes[1]+1))},
		"signature edited":     {0, "line 3 of the checkpoint file", edit(1, `\n"}`, `A\n"}`)},
		"time edited":          {0, "line 3 of the checkpoint file", edit(1, "Z\\n", "Z \\n")},
		"JSON edited":          {0, "line 3 of the checkpoint file", edit(1, `{"note"`, `{ "note"`)},
		"line of another kind": {0, "line 2 of the checkpoint file", join(append([][]byte{[]byte("hello")}, lines...)...)},
		"torn and not again":   {0, "line 3 of the checkpoint file", join(lines[0], lines[1][:len(lines[1])/2], lines[2], lines[3], lines[4])},
		"a very long line":     {0, "a longer one", join(append([][]byte{bytes.Repeat([]byte("x"), 70<<10)}, lines...)...)},
	} {
		t.Run(name, func(t *testing.T) {
			defer f.mend(t)
			f.write(t, c.file)
			b := f.red(t)
			if (c.position == 0) != (b.Position == nil) || c.position != 0 && !same(b.Position, c.position) || !strings.Contains(b.Error(), c.what) {
				t.Errorf("found %v, want position %d and %q", b, c.position, c.what)
			}
		})
	}
	t.Run("deleted", func(t *testing.T) {
		defer f.mend(t)
		if err := os.Remove(f.file); err != nil {
			t.Fatal(err)
		}
		if b := f.red(t); !same(b.Position, f.sizes[0]) {
			t.Errorf("found %v", b)
		}
	})
	t.Run("twice the same, blank lines", func(t *testing.T) {
		defer f.mend(t)
		f.write(t, join(append([][]byte{lines[0], nil}, append(lines, nil)...)...))
		f.green(t)
	})
	t.Run("torn and appended again", func(t *testing.T) {
		defer f.mend(t)
		f.write(t, join(append([][]byte{lines[0][:100]}, lines...)...))
		if report := f.green(t); report.FileTorn {
			t.Errorf("%+v", report)
		}
	})
	t.Run("not compared", func(t *testing.T) {
		defer f.mend(t)
		o := f.options()
		o.CheckpointFile = ""
		f.exec(t, cutSql(f.sizes[1]))
		f.replant(t, f.sizes[1])
		report, err := audit.Verify(t.Context(), f.owner, o)
		if err != nil || report.FileChecked {
			t.Errorf("only the file knows of this cut: %+v %v", report, err)
		}
	})
}
