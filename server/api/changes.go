package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"cairn/db"
	"cairn/db/read"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
)

// Changes are what a run did to the files of its workspace.
type Changes struct {
	State      string            `json:"state" enum:"pending,recorded,unavailable" doc:"pending until the run ends."`
	Reason     *string           `json:"reason" doc:"Of unavailable: no_sandbox (it used no tool, so that it changed nothing) or not_recorded (nobody could look at the files)."`
	Totals     *run.ChangeTotals `json:"totals" doc:"Numbers of paths, and of lines of text files."`
	Truncated  bool              `json:"truncated" doc:"There are more changes than are listed, or longer diffs than are kept."`
	Items      []Change          `json:"items" nullable:"false" doc:"By path."`
	NextCursor *string           `json:"next_cursor"`
}

// Change is one path.
type Change struct {
	Path         string  `json:"path"`
	Change       string  `json:"change" enum:"added,modified,deleted,renamed,mode,type"`
	OldPath      *string `json:"old_path" doc:"Of a renamed file."`
	ModeBefore   *string `json:"mode_before" doc:"Octal, as git writes it: 100644, 100755, 120777 a link, 040755 a folder."`
	ModeAfter    *string `json:"mode_after"`
	SizeBefore   *int64  `json:"size_before"`
	SizeAfter    *int64  `json:"size_after"`
	Binary       bool    `json:"binary"`
	LinesAdded   *int64  `json:"lines_added"`
	LinesRemoved *int64  `json:"lines_removed"`
	Diff         bool    `json:"diff" doc:"There is a text diff."`
}

// Diff is the text diff of one path.
type Diff struct {
	Path      string `json:"path"`
	Diff      string `json:"diff" doc:"Unified, with three lines of context."`
	Truncated bool   `json:"truncated"`
}

type changesIn struct {
	OneRun
	PageIn
}

type diffIn struct {
	OneRun
	Path string `query:"path" required:"true" maxLength:"4096" doc:"Of an item with diff."`
}

// maxItems bounds the list that is read for an answer; workers keep less.
const maxItems = 32 << 20

func (a *API) changesRoutes() {
	list := route("GET /runs/{run}/changes", "run-change-list", "What a run did to its files")
	list.Description = "Compared with what it began with: earlier turns of the conversation are part of that."
	register(a, list, a.changes)
	register(a, route("GET /runs/{run}/changes/diff", "run-change-diff", "The text diff of one file"), a.diff)
}

func (a *API) changes(ctx context.Context, in *changesIn) (*answer[Changes], error) {
	row, err := a.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	from, err := in.from("change")
	if err != nil {
		return nil, err
	}
	if in.Cursor == "" {
		from.n = 0
	}
	recorded, err := a.DB.Read().RunChangesByID(ctx, row.ID)
	if db.IsNotFound(err) {
		return reply(unrecorded(row)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("changes of run %s: %w", row.ID, err)
	}
	items, err := a.items(ctx, recorded)
	if err != nil {
		return nil, err
	}
	out := Changes{State: "recorded", Totals: totals(recorded), Truncated: recorded.Truncated, Items: []Change{}}
	first := min(max(0, from.n), int64(len(items)))
	last := min(first+int64(in.Limit), int64(len(items)))
	for _, i := range items[first:last] {
		out.Items = append(out.Items, Change{
			Path: i.Path, Change: i.Change, OldPath: i.OldPath, ModeBefore: i.ModeBefore, ModeAfter: i.ModeAfter, SizeBefore: i.SizeBefore,
			SizeAfter: i.SizeAfter, Binary: i.Binary, LinesAdded: i.LinesAdded, LinesRemoved: i.LinesRemoved, Diff: i.Diff,
		})
	}
	if last < int64(len(items)) {
		next := place{at: recorded.RecordedAt, n: last}.cursor("change")
		out.NextCursor = &next
	}
	return reply(out), nil
}

// unrecorded says why there is no list.
func unrecorded(row read.Run) Changes {
	out := Changes{State: "pending", Items: []Change{}}
	if run.Status(row.State).Terminal() {
		reason := "not_recorded"
		if len(row.SandboxReport) == 0 {
			reason = "no_sandbox"
		}
		out.State, out.Reason = "unavailable", &reason
	}
	return out
}

func totals(r read.RunChange) *run.ChangeTotals {
	return &run.ChangeTotals{
		Files: r.Files, Added: r.Added, Modified: r.Modified, Deleted: r.Deleted, Renamed: r.Renamed, Mode: r.Mode, Type: r.Type,
		LinesAdded: r.LinesAdded, LinesRemoved: r.LinesRemoved,
	}
}

func (a *API) items(ctx context.Context, r read.RunChange) ([]run.FileChange, error) {
	if r.ItemsBlob == nil || r.ItemsSize == nil {
		return nil, nil
	}
	raw, err := a.DB.ReadContent(ctx, r.SpaceID, event.Content{Key: r.SpaceID, Blob: *r.ItemsBlob, Size: *r.ItemsSize}, maxItems)
	if err != nil {
		return nil, err
	}
	var items []run.FileChange
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("changes of run %s: %w", r.RunID, err)
	}
	return items, nil
}

func (a *API) diff(ctx context.Context, in *diffIn) (*answer[Diff], error) {
	row, err := a.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	recorded, err := a.DB.Read().RunChangesByID(ctx, row.ID)
	if db.IsNotFound(err) {
		return nil, noDiff(in.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("changes of run %s: %w", row.ID, err)
	}
	items, err := a.items(ctx, recorded)
	if err != nil {
		return nil, err
	}
	for _, i := range items {
		if i.Path == in.Path && i.Diff && recorded.DiffsBlob != nil {
			text, err := a.diffText(ctx, recorded, i)
			return reply(Diff{Path: i.Path, Diff: text, Truncated: i.DiffCut}), err
		}
	}
	return nil, noDiff(in.Path)
}

func noDiff(path string) error {
	return fault.New(fault.NotFound, "change_not_found", "the run has no text diff for %.120q: GET /runs/{run}/changes lists those that there are", path)
}

func (a *API) diffText(ctx context.Context, r read.RunChange, i run.FileChange) (string, error) {
	content, err := a.DB.OpenContent(ctx, r.SpaceID, event.Content{Key: r.SpaceID, Blob: *r.DiffsBlob, Size: *r.DiffsSize})
	if err != nil {
		return "", err
	}
	defer content.Close()
	if _, err := io.CopyN(io.Discard, content, i.DiffAt); err != nil {
		return "", fmt.Errorf("diff of run %s: %w", r.RunID, err)
	}
	var text strings.Builder
	if _, err := io.CopyN(&text, content, i.DiffSize); err != nil {
		return "", fmt.Errorf("diff of run %s: %w", r.RunID, err)
	}
	return text.String(), nil
}
