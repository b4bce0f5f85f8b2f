package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
	"cairn/sandbox/change"
)

// changesTime bounds how long the end of a run waits for the list of its changes.
const changesTime = 2 * time.Minute

// recordChanges says what the run did to its files, before its end. Where nobody can look at them any more the run
// ends all the same: then there is no list, and no list that looks like one.
func (l *loop) recordChanges() error {
	state, err := l.fold()
	if err != nil {
		return err
	}
	if state.Sandbox.Epoch == 0 || state.ChangesEpoch == l.claim.Epoch {
		return nil
	}
	begin := time.Now()
	command, err := l.changes(state)
	if err == nil {
		command.DurationUS = time.Since(begin).Microseconds()
		err = l.record(command, "changes_recorded")
	}
	switch {
	case l.held.Err() != nil || fenced(err):
		return err
	case erased(err):
		return nil
	case err != nil:
		l.Log.Warn("the changes of a run are not recorded", "run", l.claim.Run, "epoch", l.claim.Epoch, "error", err)
	}
	return nil
}

// changes looks at the files and stores the lists.
func (l *loop) changes(state run.State) (run.RecordChanges, error) {
	command := run.RecordChanges{Target: l.claim.Target, Epoch: l.claim.Epoch}
	if err := l.history(); err != nil {
		return command, err
	}
	ctx, cancel := context.WithTimeout(l.held, changesTime)
	defer cancel()
	set, err := l.Workspaces.Changes(ctx, l.claim.Run, l.claim.Space, state, l.layers())
	if err != nil {
		return command, err
	}
	items, diffs := listed(set)
	command.Totals, command.Truncated = totals(set), set.Truncated
	if len(items) > 0 {
		raw, err := json.Marshal(items)
		if err != nil {
			return command, fmt.Errorf("changes: %w", err)
		}
		if command.Items, err = l.keep(ctx, raw); err != nil {
			return command, err
		}
	}
	if len(diffs) > 0 {
		command.Diffs, err = l.keep(ctx, diffs)
	}
	return command, err
}

func (l *loop) keep(ctx context.Context, raw []byte) (*event.Content, error) {
	stored, err := l.DB.StoreContent(ctx, l.claim.Space, bytes.NewReader(raw), math.MaxInt64)
	if err != nil && fault.KindOf(err) == "" {
		err = fmt.Errorf("changes: %w", err)
	}
	return &stored.Content, err
}

// listed are the changes as they are stored, with their diffs apart.
func listed(set change.Set) (items []run.FileChange, diffs []byte) {
	for _, c := range set.Changes {
		item := run.FileChange{Path: c.Path, Change: string(c.Kind), Binary: c.Binary, LinesAdded: c.Added, LinesRemoved: c.Removed}
		if c.OldPath != "" {
			item.OldPath = &c.OldPath
		}
		item.ModeBefore, item.SizeBefore = shown(c.Before)
		item.ModeAfter, item.SizeAfter = shown(c.After)
		if c.Diff != "" {
			item.Diff, item.DiffCut, item.DiffAt, item.DiffSize = true, c.Cut, int64(len(diffs)), int64(len(c.Diff))
			diffs = append(diffs, c.Diff...)
		}
		items = append(items, item)
	}
	return items, diffs
}

func shown(s *change.Side) (mode *string, size *int64) {
	if s == nil {
		return nil, nil
	}
	text := fmt.Sprintf("%06o", s.Mode)
	return &text, &s.Size
}

func totals(set change.Set) run.ChangeTotals {
	n := set.Counts
	t := run.ChangeTotals{
		Added: n[change.Added], Modified: n[change.Modified], Deleted: n[change.Deleted], Renamed: n[change.Renamed], Mode: n[change.Mode], Type: n[change.Type],
	}
	t.Files = t.Added + t.Modified + t.Deleted + t.Renamed + t.Mode + t.Type
	for _, c := range set.Changes {
		if c.Added != nil {
			t.LinesAdded, t.LinesRemoved = t.LinesAdded+*c.Added, t.LinesRemoved+*c.Removed
		}
	}
	return t
}
