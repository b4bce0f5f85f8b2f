package change

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"golang.org/x/sys/unix"
)

// differ makes the text diffs of a set, within its bounds.
type differ struct {
	*walk
	upper  *os.File
	lowers []*os.File
	left   int // bytes of diffs
}

// text is one side of a diff.
type text struct {
	is     bool // it is text that is small enough, or nothing
	binary bool
	string
}

func (d *differ) diff(f *found) {
	if f.Kind == Mode || f.Kind == Renamed || !isFile(f.Before) && !isFile(f.After) {
		return
	}
	var before, after text
	if f.Kind != Added {
		before = d.load(d.lowers[f.layer], f.real, f.Before)
	} else {
		before.is = true
	}
	if f.Kind != Deleted {
		after = d.load(d.upper, f.real, f.After)
	} else {
		after.is = true
	}
	f.Binary = before.binary || after.binary
	if !before.is || !after.is {
		return
	}
	from, to := "a/"+f.Path, "b/"+f.Path
	if f.Before == nil {
		from = "/dev/null"
	}
	if f.After == nil {
		to = "/dev/null"
	}
	edits := udiff.Lines(before.string, after.string)
	whole, err := udiff.ToUnified(from, to, before.string, edits, 3)
	if err != nil {
		d.set.Truncated = true
		return
	}
	added, removed := lines(whole)
	f.Added, f.Removed = &added, &removed
	f.Diff, f.Cut = cut(whole, min(d.limits.Diff, d.left))
	d.left -= len(f.Diff)
	d.set.Truncated = d.set.Truncated || f.Cut
}

func isFile(s *Side) bool { return s != nil && s.Mode&unix.S_IFMT == unix.S_IFREG }

// load reads a side as text. Where one side is no file, as when a link became one, there is no diff.
func (d *differ) load(dir *os.File, path string, s *Side) text {
	if !isFile(s) {
		return text{}
	}
	f, st, err := openRegular(dir, path)
	if err != nil {
		return text{}
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, min(st.Size, d.limits.Text)+1))
	if err != nil {
		return text{}
	}
	large := int64(len(raw)) > d.limits.Text
	if bytes.IndexByte(raw, 0) >= 0 || !large && !utf8.Valid(raw) {
		return text{binary: true}
	}
	return text{is: !large, string: string(raw)}
}

// lines counts those of a unified diff; its first two are the names.
func lines(diff string) (added, removed int64) {
	n := 0
	for line := range strings.Lines(diff) {
		if n++; n <= 2 {
			continue
		}
		switch line[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}

// cut keeps whole lines.
func cut(diff string, most int) (string, bool) {
	if len(diff) <= most {
		return diff, false
	}
	return diff[:strings.LastIndexByte(diff[:most], '\n')+1], true
}
