package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/internal/logq"
)

const (
	swapTries = 20
	swapPause = time.Second
)

// SwapOptions say under what conditions rebuilt tables go live.
type SwapOptions struct {
	// RequireEqual compares every row while appends wait, and refuses with a *Different. Leave it out to
	// mend rows that are wrong, or to bring in a changed projection: then rows are meant to differ.
	RequireEqual bool

	ungated bool // only for the test that shows what the gate is for
}

// SwapReport is what a swap did.
type SwapReport struct {
	Old      string `json:"old"`      // the schema that the former live tables are in until DropOld
	Position int64  `json:"position"` // the last one folded
	Events   int64  `json:"events"`   // folded in all
	HeldUS   int64  `json:"held_us"`  // how long appends waited
	Tries    int    `json:"tries"`
}

// Swap puts the rebuilt tables in the place of the live ones, in one transaction:
//
//	gate (exclusive) -> positions for all -> fold what remains -> compare -> rename both schemas -> commit
//
// Every append holds the gate shared from its first statement to its commit, so that behind the gate nothing
// is under way and what is folded is all there is. Without it a rename would not wait for writers: rows of an
// append that began before would land in the old tables. A gate that does not open within lockWait is let go,
// since appends queue behind the one who waits, and tried again after a pause.
//
// Sessions keep their prepared statements: the rename makes the server plan them anew on the new tables. The
// reader of a statement that is under way still sees the old ones. Grants made by hand on the old schema are
// not carried over.
func (r *Rebuilt) Swap(ctx context.Context, o SwapOptions) (SwapReport, error) {
	b := r.b
	if b.partial || b.swapped {
		return SwapReport{}, fmt.Errorf("schema %s ends at position %d or is live already: only a rebuild to the head can be swapped in, once", b.schema, b.position)
	}
	report := SwapReport{Old: oldPrefix + strings.TrimPrefix(b.schema, buildPrefix)}
	for report.Tries = 1; ; report.Tries++ {
		if err := r.CatchUp(ctx); err != nil {
			return report, err
		}
		began := time.Now()
		err := b.swapOnce(ctx, o, report.Old)
		report.HeldUS = time.Since(began).Microseconds()
		if err == nil {
			report.Position, report.Events = b.position, b.events
			return report, nil
		}
		if !isLockTimeout(err) || report.Tries == swapTries {
			return report, fmt.Errorf("swap: %w", err)
		}
		select {
		case <-ctx.Done():
			return report, ctx.Err()
		case <-time.After(swapPause):
		}
	}
}

func (b *build) swapOnce(ctx context.Context, o SwapOptions, old string) (err error) {
	tx, err := b.writer.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if rerr := tx.Rollback(context.WithoutCancel(ctx)); rerr != nil && !errors.Is(rerr, pgx.ErrTxClosed) {
			err = errors.Join(err, rerr)
		}
	}()
	// A swapper that freezes must not keep the gate.
	if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '"+lockWait+"'; SET LOCAL idle_in_transaction_session_timeout = '5s'; SET LOCAL synchronous_commit = on"); err != nil {
		return err
	}
	if !o.ungated {
		if err := logq.New(tx).LogGateExclusive(ctx); err != nil {
			return err
		}
	}
	f, err := b.foldRest(ctx, tx)
	if err != nil {
		return err
	}
	if o.RequireEqual {
		differences, _, err := compareSchemas(ctx, tx, db.ViewSchema, b.schema)
		if err != nil {
			return err
		}
		if len(differences) > 0 {
			differences[0].Order = ByPosition
			return differences[0]
		}
	}
	live, fresh := pgx.Identifier{db.ViewSchema}.Sanitize(), pgx.Identifier{b.schema}.Sanitize()
	if _, err := tx.Exec(ctx, "ALTER SCHEMA "+live+" RENAME TO "+pgx.Identifier{old}.Sanitize()+"; ALTER SCHEMA "+fresh+" RENAME TO "+live); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit, look whether schema %s exists: %w", old, err)
	}
	b.swapped, b.position, b.events = true, f.position, f.events
	return nil
}

// foldRest gives every committed event its position, so that the positions are all there is, and folds those
// that the schema lacks.
func (b *build) foldRest(ctx context.Context, tx pgx.Tx) (*folder, error) {
	q := logq.New(b.reader)
	for {
		n, err := q.LogSequence(ctx, logq.LogSequenceParams{Lim: foldBatch})
		if err != nil {
			return nil, fmt.Errorf("positions: %w", err)
		}
		if n < foldBatch {
			break
		}
	}
	opener, err := b.o.opener(b.reader)
	if err != nil {
		return nil, err
	}
	head, err := b.head(ctx)
	if err != nil {
		return nil, err
	}
	after := b.position
	f := b.folder(opener, tx, head)
	if err := f.run(ctx, positions(q, &after, math.MaxInt64)); err != nil {
		return nil, err
	}
	if f.position != head || f.events != head {
		return nil, fmt.Errorf("folded %d events up to position %d, the log ends at %d: rebuild again", f.events, f.position, head)
	}
	return f, nil
}
