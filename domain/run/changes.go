package run

import (
	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// The kinds of changes.
const (
	ChangeAdded    = "added"
	ChangeModified = "modified"
	ChangeDeleted  = "deleted"
	ChangeRenamed  = "renamed" // the same content at another path
	ChangeMode     = "mode"    // the same content with other permissions
	ChangeType     = "type"    // a file became a link or a folder, or the other way round
)

// FileChange is what a run did to one path. Modes are octal as git writes them: "100644" a file, "100755" a program,
// "120777" a link, "040755" a folder. Unknown is null.
type FileChange struct {
	Path         string  `json:"path"`
	Change       string  `json:"change"`
	OldPath      *string `json:"old_path"` // of a renamed file
	ModeBefore   *string `json:"mode_before"`
	ModeAfter    *string `json:"mode_after"`
	SizeBefore   *int64  `json:"size_before"`
	SizeAfter    *int64  `json:"size_after"`
	Binary       bool    `json:"binary"`
	LinesAdded   *int64  `json:"lines_added"`
	LinesRemoved *int64  `json:"lines_removed"`
	Diff         bool    `json:"diff"` // there is a text diff
	DiffAt       int64   `json:"diff_at"`
	DiffSize     int64   `json:"diff_size"` // bytes from diff_at on in the content of the diffs
	DiffCut      bool    `json:"diff_cut"`  // the diff is longer than what is kept of it
}

// ChangeTotals count the paths of a change set.
type ChangeTotals struct {
	Files        int64 `json:"files"`         // all paths that changed
	Added        int64 `json:"added"`         // new ones
	Modified     int64 `json:"modified"`      // with other content
	Deleted      int64 `json:"deleted"`       // gone
	Renamed      int64 `json:"renamed"`       // the same content at another path
	Mode         int64 `json:"mode"`          // with other permissions alone
	Type         int64 `json:"type"`          // a file became a link or a folder, or the other way round
	LinesAdded   int64 `json:"lines_added"`   // of text files that have a diff
	LinesRemoved int64 `json:"lines_removed"` // of text files that have a diff
}

func (t ChangeTotals) check(field string) error {
	for _, n := range []int64{t.Files, t.Added, t.Modified, t.Deleted, t.Renamed, t.Mode, t.Type, t.LinesAdded, t.LinesRemoved} {
		if err := check.Range(field, n, 0, 1<<53); err != nil {
			return err
		}
	}
	if t.Files != t.Added+t.Modified+t.Deleted+t.Renamed+t.Mode+t.Type {
		return fault.Field(field, "%d files are not the sum of their changes: count again", t.Files)
	}
	return nil
}

// RecordChanges says what the run did to its files; once per epoch, before the end.
type RecordChanges struct {
	Target
	Epoch      int64          `json:"epoch"`
	Totals     ChangeTotals   `json:"totals"`
	Items      *event.Content `json:"items"` // a list of FileChange by path, in JSON; null when nothing changed
	Diffs      *event.Content `json:"diffs"` // the diffs one after the other; null when there are none
	Truncated  bool           `json:"truncated"`
	DurationUS int64          `json:"duration_us"`
}

// Name implements event.Command.
func (RecordChanges) Name() string { return "run.record_changes" }

// Decide implements event.Command.
func (c RecordChanges) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, c.Stream())
	if err := state.requireHolder(c.Epoch, meta.Actor); err != nil {
		return nil, err
	}
	if state.ChangesEpoch == c.Epoch {
		return nil, fault.New(fault.Conflict, "changes_recorded", "the changes are recorded for epoch %d: end the run", c.Epoch)
	}
	if state.Sandbox.Epoch == 0 {
		return nil, fault.New(fault.Conflict, "sandbox_missing", "the run never had a sandbox, so that it changed nothing: end it")
	}
	if err := check.First(c.checkContent("items", c.Items), c.checkContent("diffs", c.Diffs), c.Totals.check("totals"), check.Range("duration_us", c.DurationUS, 0, 1<<53)); err != nil {
		return nil, err
	}
	return c.change(ChangesRecorded{Epoch: c.Epoch, Totals: c.Totals, Items: c.Items, Diffs: c.Diffs, Truncated: c.Truncated, DurationUS: c.DurationUS}), nil
}

func (c RecordChanges) checkContent(field string, content *event.Content) error {
	if content != nil && !content.IsWhole(c.Space) {
		return fault.Field(field, "it is no content of this space: store it first")
	}
	return nil
}
