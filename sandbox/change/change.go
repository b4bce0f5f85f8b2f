// Package change says what an upper layer changes of the layers beneath it: what a run did to its files.
//
//	upper, lowers --walk side by side--> found --hash where sizes meet--> renamed | added, deleted
//	                                         \--read, bounded--> unified diffs
//
// An upper is hostile: an agent made it. Nothing in it is opened by a path; each name is opened in its folder's
// descriptor with openat2, never through a link and never in another file system. Only regular files are read. Their
// number, their size, the depth of folders and the time are bounded; what is beyond is left out, and Truncated says so.
//
// Marks of the overlay: a whiteout is a device 0:0 and deletes what lies beneath, a folder with user.overlay.opaque
// "y" hides it. Documentation/filesystems/overlayfs.rst of the Linux kernel describes both.
//
// It imports the standard library, golang.org/x/sys and the differ; it can be used without the rest of sandbox.
package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Kind is what became of a path.
type Kind string

// The kinds.
const (
	Added    Kind = "added"
	Modified Kind = "modified"
	Deleted  Kind = "deleted"
	Renamed  Kind = "renamed"
	Mode     Kind = "mode"
	Type     Kind = "type"
)

// Change is one path. Side is nil where there is nothing.
type Change struct {
	Path          string
	OldPath       string // of Renamed
	Kind          Kind
	Before, After *Side

	Binary         bool
	Added, Removed *int64 // lines; nil when there is no diff
	Diff           string // unified; empty when there is none
	Cut            bool   // the diff is longer
}

// Side is a path before or after.
type Side struct {
	Mode uint32 // as stat has it: type and permissions
	Size int64
}

// Limits bound the work. Zero gives the default in parentheses.
type Limits struct {
	Changes  int   // listed (10,000)
	Entries  int   // looked at, in all layers (1,000,000)
	Depth    int   // of folders (128)
	Text     int64 // bytes of a file that is compared by lines (1 MiB)
	Diff     int   // bytes of one diff (256 KiB)
	Diffs    int   // bytes of all diffs (8 MiB)
	HashSize int64 // bytes read to compare contents (1 GiB)
}

func (l Limits) filled() Limits {
	return Limits{
		Changes: cmp.Or(l.Changes, 10_000), Entries: cmp.Or(l.Entries, 1_000_000), Depth: cmp.Or(l.Depth, 128), Text: cmp.Or(l.Text, 1<<20),
		Diff: cmp.Or(l.Diff, 256<<10), Diffs: cmp.Or(l.Diffs, 8<<20), HashSize: cmp.Or(l.HashSize, 1<<30),
	}
}

// Set is all that changed, by path.
type Set struct {
	Changes   []Change
	Counts    map[Kind]int64 // of all changes, also of those beyond Limits.Changes
	Truncated bool           // something is left out of Changes, or of the diffs
}

// Of compares an upper with its lowers, the topmost first. None of them may change meanwhile, but for the last one,
// which may be a folder that people work in.
func Of(ctx context.Context, upper string, lowers []string, limits Limits) (Set, error) {
	w := &walk{ctx: ctx, limits: limits.filled(), set: Set{Counts: map[Kind]int64{}}}
	top, err := openTop(upper)
	if err != nil {
		return Set{}, fmt.Errorf("upper layer: %w", err)
	}
	defer top.Close()
	below := &merged{}
	defer below.close()
	for i, lower := range lowers {
		f, err := openTop(lower)
		if err != nil {
			return Set{}, fmt.Errorf("lower layer: %w", err)
		}
		below.push(f, i)
	}
	if err := w.compare("", top, below, false, 0); err != nil && !errors.Is(err, errEnough) {
		return Set{}, err
	}
	return w.finish(top, below.dirs)
}

// finish pairs renamed files, makes the diffs, and sorts.
func (w *walk) finish(upper *os.File, lowers []*os.File) (Set, error) {
	w.rename(upper, lowers)
	for _, f := range w.found {
		w.set.Counts[f.Kind]++
	}
	slices.SortFunc(w.found, func(a, b *found) int { return cmp.Compare(a.Path, b.Path) })
	if len(w.found) > w.limits.Changes {
		w.found, w.set.Truncated = w.found[:w.limits.Changes], true
	}
	d := &differ{walk: w, upper: upper, lowers: lowers, left: w.limits.Diffs}
	for _, f := range w.found {
		if err := w.ctx.Err(); err != nil {
			return Set{}, err
		}
		d.diff(f)
		w.set.Changes = append(w.set.Changes, f.Change)
	}
	return w.set, nil
}
