package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/internal/logq"
	"cairn/domain/event"
)

// watched is a row that differs, followed through a fold of the events that may write it.
type watched struct {
	*Different
	where  string
	shown  []string // the columns that are followed
	last   Row
	exists bool
	change *EventRef // last event after which what differs had another value
	touch  *EventRef // last event after which the row was another version
	tuple  string
}

// findEvents folds the events around the differing rows once more, looking at the rows after each: first a
// batch at a time, then event by event inside the batches that changed one. It depends on no knowledge of
// which stream writes which table, so it also names the culprit of an Apply that writes where it must not.
func (c *comparison) findEvents(ctx context.Context, opener *db.Opener, order Order, differences []*Different) error {
	tables, err := tablesOf(ctx, c.write, c.b.schema)
	if err != nil {
		return err
	}
	var rows []*watched
	ids := map[event.ID]bool{}
	for _, d := range differences {
		if len(d.Key) == 0 {
			continue
		}
		rows = append(rows, watch(d, tables[d.Table]))
		for _, row := range []Row{d.Live, d.Rebuilt} {
			for _, value := range row {
				if id, err := event.ParseID(text(value)); err == nil && !id.IsZero() {
					ids[id] = true
				}
			}
		}
	}
	related, err := logq.New(c.read).EventsRelated(ctx, slices.Collect(maps.Keys(ids)))
	if err != nil {
		return fmt.Errorf("events of the differing rows: %w", err)
	}
	if order == ByStream {
		slices.SortStableFunc(related, func(a, b logq.EventsRelatedRow) int {
			if n := b.StreamID.Compare(a.StreamID); n != 0 {
				return n
			}
			return int(a.Version - b.Version)
		})
	}
	list := make([]event.ID, len(related))
	for i := range related {
		list[i] = related[i].ID
	}
	return c.follow(ctx, opener, tables, rows, byID(logq.New(c.read), list))
}

// follow folds into the emptied schema and notes what changes the rows.
func (c *comparison) follow(ctx context.Context, opener *db.Opener, tables map[string]table, rows []*watched, from source) error {
	err := c.undone(ctx, func(tx pgx.Tx) error {
		for name := range tables {
			if _, err := tx.Exec(ctx, "TRUNCATE "+pgx.Identifier{c.b.schema, name}.Sanitize()); err != nil {
				return err
			}
		}
		for {
			records, err := from(ctx)
			if err != nil || len(records) == 0 {
				return err
			}
			if err := c.followBatch(ctx, tx, opener, rows, records); err != nil {
				return err
			}
		}
	})
	for _, w := range rows {
		if w.Event = w.change; w.Event == nil {
			w.Event = w.touch
		}
	}
	return err
}

// followBatch folds a whole batch; when that changed a row, it is taken back and folded event by event.
func (c *comparison) followBatch(ctx context.Context, tx pgx.Tx, opener *db.Opener, rows []*watched, records []event.Record) error {
	f := c.b.folder(opener, tx, 0)
	f.progress = nil
	trial, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	p, err := f.prepare(ctx, records)
	if err == nil {
		err = f.write(ctx, p)
	}
	if err != nil {
		return err
	}
	changed := false
	for _, w := range rows {
		now, err := w.look(ctx, tx, c.b.schema)
		if err != nil {
			return err
		}
		// A row that comes and goes inside the batch leaves nothing to see after it.
		changed = changed || now.tuple != w.tuple || w.Rebuilt == nil
	}
	if !changed {
		return trial.Commit(ctx)
	}
	if err := trial.Rollback(ctx); err != nil {
		return err
	}
	return c.followEach(ctx, tx, f, rows, records)
}

func (c *comparison) followEach(ctx context.Context, tx pgx.Tx, f *folder, rows []*watched, records []event.Record) error {
	for i := range records {
		p, err := f.prepare(ctx, records[i:i+1])
		if err == nil {
			err = f.write(ctx, p)
		}
		if err != nil {
			return err
		}
		for _, w := range rows {
			now, err := w.look(ctx, tx, c.b.schema)
			if err != nil {
				return err
			}
			w.note(now, refOf(&records[i]))
		}
	}
	return nil
}

// sight is a row at one moment.
type sight struct {
	row   Row
	tuple string // place of the row's version; every write makes another
}

func (w *watched) look(ctx context.Context, tx pgx.Tx, schema string) (sight, error) {
	args := make([]any, 0, len(w.Key))
	for _, column := range slices.Sorted(maps.Keys(w.Key)) {
		args = append(args, text(w.Key[column]))
	}
	var s sight
	rows, err := tx.Query(ctx, fmt.Sprintf("SELECT %s, t.ctid::text FROM %s t WHERE %s",
		object(w.shown), pgx.Identifier{schema, w.Table}.Sanitize(), w.where), args...)
	if err != nil {
		return s, err
	}
	_, err = pgx.ForEachRow(rows, []any{&s.row, &s.tuple}, func() error { return nil })
	return s, err
}

// watch follows the columns that differ, as far as the rebuilt table has them.
func watch(d *Different, t table) *watched {
	w := &watched{Different: d}
	for _, column := range d.Columns {
		if slices.Contains(t.columns, column) {
			w.shown = append(w.shown, column)
		}
	}
	if len(w.shown) == 0 {
		w.shown = t.columns
	}
	parts := make([]string, len(t.key))
	for i, column := range t.key {
		parts[i] = fmt.Sprintf("t.%s = $%d::text::%s", pgx.Identifier{column}.Sanitize(), i+1, t.types[i])
	}
	w.where = strings.Join(parts, " AND ")
	return w
}

func (w *watched) note(now sight, ref *EventRef) {
	exists := now.row != nil
	if exists != w.exists || len(unequal(now.row, w.last)) > 0 {
		w.change = ref
	}
	if now.tuple != w.tuple {
		w.touch = ref
	}
	w.last, w.exists, w.tuple = now.row, exists, now.tuple
}
