package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/internal/logq"
)

// maxDifferences bounds the differences reported of one table.
const maxDifferences = 10

// Row is one row as text by column; null is nil.
type Row map[string]*string

// Different is a row that the live projections and a fold of the log do not agree on.
type Different struct {
	Table   string    `json:"table"`
	Key     Row       `json:"key"`     // of the primary key; empty when whole tables differ
	Columns []string  `json:"columns"` // that differ; empty when one side has no such row
	Live    Row       `json:"live"`    // null: the live table has no such row
	Rebuilt Row       `json:"rebuilt"` // null: the fold has no such row
	Event   *EventRef `json:"event"`   // the last one that changed what differs; null: no event writes this row
	Order   Order     `json:"order"`   // in which the log was folded
}

// Error names table, key and event, but no values: they are people's text, and messages end up in files
// that no erasure reaches.
func (d *Different) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "projection %s", d.Table)
	if len(d.Key) > 0 {
		fmt.Fprintf(&b, ", row %s", d.keyText())
	}
	switch {
	case len(d.Key) == 0 && d.Live == nil:
		b.WriteString(": the live schema has no such table")
	case len(d.Key) == 0:
		b.WriteString(": this version knows no such table")
	case d.Live == nil:
		b.WriteString(": missing, the log has it")
	case d.Rebuilt == nil:
		b.WriteString(": too much, the log does not have it")
	default:
		fmt.Fprintf(&b, ": %s not as the log says", strings.Join(d.Columns, ", "))
	}
	if d.Order == ByStream {
		b.WriteString(" when whole streams are folded one after the other: no row may depend on which of them arrived first")
	}
	if d.Event != nil {
		fmt.Fprintf(&b, "; last written by %s", d.Event)
	} else if len(d.Key) > 0 {
		b.WriteString("; no event writes it")
	}
	return b.String()
}

func (d *Different) keyText() string {
	parts := make([]string, 0, len(d.Key))
	for column, value := range d.Key {
		parts = append(parts, fmt.Sprintf("%s=%s", column, text(value)))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func text(value *string) string {
	if value == nil {
		return "null"
	}
	return *value
}

// compareLive folds what the schema lacks and compares, in one snapshot. All it writes is taken back.
func (b *build) compareLive(ctx context.Context, order Order, report *ReplayReport) (err error) {
	read, write, end, err := snapshot(ctx, b.reader, b.writer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	c := &comparison{b: b, read: read, write: write, live: db.ViewSchema}
	if err := c.pass(ctx, order, report); err != nil {
		return err
	}
	if len(report.Differences) > 0 {
		return report.Differences[0]
	}
	return nil
}

// comparison is one look at live and rebuilt tables that both belong to the same moment.
type comparison struct {
	b     *build
	read  pgx.Tx // sees the log and the vault
	write pgx.Tx // sees the live tables and what was folded into the schema
	live  string
}

// pass folds in one order, compares, and takes the fold back.
func (c *comparison) pass(ctx context.Context, order Order, report *ReplayReport) error {
	opener, err := c.b.o.opener(c.read)
	if err != nil {
		return err
	}
	q := logq.New(c.read)
	identity, err := q.LogIdentity(ctx)
	if err != nil {
		return fmt.Errorf("head of the log: %w", err)
	}
	return c.undone(ctx, func(tx pgx.Tx) error {
		after, rest := c.b.position, order
		if after > 0 {
			rest = ByPosition // the order counts for what was folded ahead
		}
		f := c.b.folder(opener, tx, identity.Head)
		if err := f.run(ctx, whole(q, rest, &after)); err != nil {
			return err
		}
		if rest == ByPosition {
			if err := f.requireReached(identity.Head); err != nil {
				return err
			}
		}
		report.Position, report.Events = max(report.Position, f.position), f.events
		return c.tables(ctx, tx, opener, order, report)
	})
}

// undone runs fn inside a savepoint and takes back what it wrote.
func (c *comparison) undone(ctx context.Context, fn func(pgx.Tx) error) error {
	inner, err := c.write.Begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(fn(inner), inner.Rollback(context.WithoutCancel(ctx)))
}

// tables compares them all and finds the events of what differs.
func (c *comparison) tables(ctx context.Context, tx pgx.Tx, opener *db.Opener, order Order, report *ReplayReport) error {
	differences, counts, err := compareSchemas(ctx, tx, c.live, c.b.schema)
	if err != nil {
		return err
	}
	report.Tables = counts
	for _, d := range differences {
		d.Order = order
	}
	if len(differences) > 0 {
		if err := c.findEvents(ctx, opener, order, differences); err != nil {
			return err
		}
	}
	report.Differences = differences
	return nil
}
