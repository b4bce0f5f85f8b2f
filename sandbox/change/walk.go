package change

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// found is a change with what is needed to look at it again.
type found struct {
	Change
	real  string // the path on disk; Path may show it escaped
	layer int    // of the side before: which lower has it
}

// walk goes through an upper and what lies beneath it, side by side.
type walk struct {
	ctx     context.Context
	limits  Limits
	set     Set
	found   []*found
	entries int
	read    int64
}

// errEnough ends a walk at its bounds; what was found until then is kept.
var errEnough = errors.New("enough")

func (w *walk) tick() error {
	if w.entries++; w.entries > w.limits.Entries {
		w.set.Truncated = true
		return errEnough
	}
	return w.ctx.Err()
}

func (w *walk) add(f *found) {
	f.real = f.Path
	if !utf8.ValidString(f.Path) || strings.ContainsFunc(f.Path, unicode.IsControl) {
		f.Path = strconv.Quote(f.Path) // a name that is no line of text is shown escaped
	}
	w.found = append(w.found, f)
}

// names lists a folder in order.
func (w *walk) names(dir *os.File) ([]string, error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	var all []string
	for {
		names, err := dir.Readdirnames(1024)
		all = append(all, names...)
		if errors.Is(err, io.EOF) {
			slices.Sort(all)
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if w.entries+len(all) > w.limits.Entries {
			w.set.Truncated = true
			slices.Sort(all)
			return all, nil
		}
	}
}

// compare goes through one folder. hides: what lies beneath and is not in the upper is gone.
func (w *walk) compare(at string, upper *os.File, below *merged, hides bool, depth int) error {
	if depth > w.limits.Depth {
		w.set.Truncated = true
		return nil
	}
	names, err := w.names(upper)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := w.tick(); err != nil {
			return err
		}
		if err := w.entry(path.Join(at, name), name, upper, below, depth); err != nil {
			return err
		}
	}
	if !hides {
		return nil
	}
	return w.hidden(at, below, names, depth)
}

// hidden are names beneath an opaque folder that it does not have itself.
func (w *walk) hidden(at string, below *merged, has []string, depth int) error {
	names, err := w.shown(below)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, there := slices.BinarySearch(has, name); there {
			continue
		}
		if err := w.gone(path.Join(at, name), name, below, depth); err != nil {
			return err
		}
	}
	return nil
}

// shown are the names of a folder beneath.
func (w *walk) shown(below *merged) ([]string, error) {
	var all []string
	for _, dir := range below.dirs {
		names, err := w.names(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func side(st *unix.Stat_t) *Side { return &Side{Mode: st.Mode, Size: st.Size} }

// entry compares one name of the upper with what it shows beneath.
func (w *walk) entry(at, name string, upper *os.File, below *merged, depth int) error {
	st, ok, err := stat(upper, name)
	if err != nil || !ok {
		return err
	}
	if isWhiteout(&st) {
		return w.gone(at, name, below, depth)
	}
	before, in, err := below.lookup(name)
	if err != nil {
		return err
	}
	switch {
	case in.dir == nil && isFolder(&st):
		return w.newFolder(at, name, upper, &st, depth)
	case in.dir == nil:
		w.add(&found{Change: Change{Path: at, Kind: Added, After: side(&st)}})
		return nil
	case isFolder(&st) && isFolder(&before):
		return w.sameFolder(at, name, upper, below, &st, &before, depth)
	case st.Mode&unix.S_IFMT != before.Mode&unix.S_IFMT:
		w.add(&found{Change: Change{Path: at, Kind: Type, Before: side(&before), After: side(&st)}, layer: in.layer})
		if isFolder(&st) {
			return w.enter(at, name, upper, &merged{}, false, depth)
		}
		if isFolder(&before) {
			return w.inside(at, name, below, depth)
		}
		return nil
	}
	return w.file(at, name, upper, in, &st, &before)
}

// file compares two of one kind.
func (w *walk) file(at, name string, upper *os.File, in source, st, before *unix.Stat_t) error {
	change := Change{Path: at, Kind: Modified, Before: side(before), After: side(st)}
	same := st.Size == before.Size
	var err error
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		var a, b string
		if a, err = readlink(upper, name); err == nil {
			b, err = readlink(in.dir, name)
		}
		same = a == b
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		same = st.Rdev == before.Rdev
	case same:
		same, err = w.equal(upper, in.dir, name)
	}
	switch {
	case err != nil && w.ctx.Err() != nil:
		return w.ctx.Err()
	case err != nil: // not readable: it is in the upper, so that it counts as changed
	case same && st.Mode == before.Mode:
		return nil
	case same:
		change.Kind = Mode
	}
	w.add(&found{Change: change, layer: in.layer})
	return nil
}

// newFolder reports what is in it, or the folder itself when it is empty.
func (w *walk) newFolder(at, name string, upper *os.File, st *unix.Stat_t, depth int) error {
	n := len(w.found)
	if err := w.enter(at, name, upper, &merged{}, false, depth); err != nil || len(w.found) > n {
		return err
	}
	w.add(&found{Change: Change{Path: at, Kind: Added, After: side(st)}})
	return nil
}

func (w *walk) sameFolder(at, name string, upper *os.File, below *merged, st, before *unix.Stat_t, depth int) error {
	if st.Mode != before.Mode {
		w.add(&found{Change: Change{Path: at, Kind: Mode, Before: side(before), After: side(st)}})
	}
	folder, err := below.enter(name)
	if err != nil {
		return err
	}
	defer folder.close()
	return w.enter(at, name, upper, folder, true, depth)
}

// enter goes into a folder of the upper. mayHide: it is asked whether it is opaque.
func (w *walk) enter(at, name string, upper *os.File, below *merged, mayHide bool, depth int) error {
	f, err := openFolder(upper, name)
	if errors.Is(err, unix.EACCES) {
		w.set.Truncated = true // only a worker without privilege meets this
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return w.compare(at, f, below, mayHide && isOpaque(f), depth+1)
}

// gone reports a name beneath that is not shown any more: each file of a folder, or the folder when it is empty.
func (w *walk) gone(at, name string, below *merged, depth int) error {
	if err := w.tick(); err != nil {
		return err
	}
	st, in, err := below.lookup(name)
	if err != nil || in.dir == nil {
		return err
	}
	n := len(w.found)
	if isFolder(&st) {
		if err := w.inside(at, name, below, depth); err != nil || len(w.found) > n {
			return err
		}
	}
	w.add(&found{Change: Change{Path: at, Kind: Deleted, Before: side(&st)}, layer: in.layer})
	return nil
}

// inside reports all that a folder beneath shows as gone.
func (w *walk) inside(at, name string, below *merged, depth int) error {
	if depth > w.limits.Depth {
		w.set.Truncated = true
		return nil
	}
	folder, err := below.enter(name)
	if err != nil {
		return err
	}
	defer folder.close()
	return w.hidden(at, folder, nil, depth+1)
}
