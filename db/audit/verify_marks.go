package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"cairn/db/internal/logq"
)

// mark is a checkpoint with a good signature, and where it was found.
type mark struct {
	Checkpoint
	stored bool // in the database
	line   int  // of the file, from 1; 0: not in the file
}

func (m *mark) where() string {
	if m.line > 0 {
		return fmt.Sprintf(" in line %d of the checkpoint file", m.line)
	}
	return " in the database"
}

// marks are all checkpoints, each once, about 200 bytes each.
type marks struct {
	verifier note.Verifier
	known    map[[32]byte]*mark // by the SHA-256 of the note
	stored   int64              // size of the last one in the database

	valid  []*mark // those that the log as it is now must agree with, by size
	next   int     // in valid: the next one to reach
	proven int64   // size of the last one that agreed
}

func newMarks(verifier note.Verifier) marks {
	return marks{verifier: verifier, known: map[[32]byte]*mark{}}
}

// open returns the mark of a note, checking a signature that was not seen before.
func (m *marks) open(signed string) (*mark, error) {
	digest := sha256.Sum256([]byte(signed))
	if known, ok := m.known[digest]; ok {
		return known, nil
	}
	c, err := openCheckpoint(signed, m.verifier)
	if err != nil {
		return nil, err
	}
	m.known[digest] = &mark{Checkpoint: c}
	return m.known[digest], nil
}

// readMarks reads the checkpoints of the database.
func (v *verification) readMarks(ctx context.Context) error {
	page := logq.CheckpointsAfterParams{Lim: 1000}
	for {
		rows, err := v.q.CheckpointsAfter(ctx, page)
		if err != nil {
			return fmt.Errorf("checkpoints: %w", err)
		}
		for _, row := range rows {
			m, err := v.marks.open(row.Note)
			if err != nil {
				return broken("checkpoint in the database", "a note signed by the log's key", err).at(row.Size)
			}
			if m.Size != row.Size || m.Incarnation != row.Incarnation || !m.At.Equal(row.At) {
				return broken("columns beside the note of a checkpoint",
					fmt.Sprintf("size %d, incarnation %d, %s", m.Size, m.Incarnation, m.At.Format(noteTime)),
					fmt.Sprintf("size %d, incarnation %d, %s", row.Size, row.Incarnation, row.At.UTC().Format(noteTime))).at(m.Size)
			}
			m.stored, v.marks.stored = true, row.Size
		}
		if len(rows) < int(page.Lim) {
			return nil
		}
		page.Incarnation, page.Size = rows[len(rows)-1].Incarnation, rows[len(rows)-1].Size
	}
}

// checkLives checks that every incarnation was announced, and finds the marks that still bind the log: those
// of an earlier life only up to the head at which a later one began.
func (v *verification) checkLives(context.Context) error {
	all := v.marks.sorted()
	newest := int64(1)
	announced := map[int64]bool{1: true}
	for _, m := range all {
		if m.LogID != v.report.LogID {
			return broken("log_id of the checkpoint"+m.where(), v.report.LogID, m.LogID)
		}
		newest = max(newest, m.Incarnation)
		if m.Restored {
			announced[m.Incarnation] = true
			v.report.Restored = append(v.report.Restored, m.Checkpoint)
		}
	}
	for _, m := range all {
		if !announced[m.Incarnation] {
			return broken(fmt.Sprintf("the beginning of incarnation %d", m.Incarnation), "a checkpoint marked restored", "only others").at(m.Size)
		}
	}
	if v.report.Incarnation != newest {
		return broken("incarnation of the log: after a restore from a backup run 'cairn admin restored' once", newest, v.report.Incarnation)
	}
	v.bind(all)
	return nil
}

// bind selects the marks that bind the log. all is in order of incarnation and size.
func (v *verification) bind(all []*mark) {
	began := map[int64]int64{} // incarnation -> the head at which it began
	for _, m := range all {
		if m.Restored {
			began[m.Incarnation] = m.Size
		}
	}
	limit, life := int64(math.MaxInt64), v.report.Incarnation
	for _, m := range slices.Backward(all) {
		if m.Incarnation != life {
			limit, life = min(limit, began[life]), m.Incarnation
		}
		if m.Size <= limit {
			v.marks.valid = append(v.marks.valid, m)
			v.report.Signed = max(v.report.Signed, m.Size)
		}
	}
	slices.SortStableFunc(v.marks.valid, func(a, b *mark) int { return cmp.Compare(a.Size, b.Size) })
	v.report.Checkpoints = int64(len(all))
}

func (m *marks) sorted() []*mark {
	all := make([]*mark, 0, len(m.known))
	for _, one := range m.known {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *mark) int {
		return cmp.Or(cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Size, b.Size), a.At.Compare(b.At))
	})
	return all
}

// checkMarksAt compares the roots that were signed at a size with the tree, which has that size now.
func (v *verification) checkMarksAt(size int64) error {
	m := &v.marks
	for ; m.next < len(m.valid) && m.valid[m.next].Size == size; m.next++ {
		one := m.valid[m.next]
		if root := v.tree.root(); one.Root != root {
			return broken(fmt.Sprintf("positions %d to %d are not those that were signed: root of the checkpoint%s", m.proven+1, size, one.where()),
				one.Root, root).at(m.proven + 1)
		}
	}
	if m.next > 0 {
		m.proven = m.valid[m.next-1].Size
	}
	return nil
}

// beyond returns the mark that covers most, if that is more than the log has.
func (m *marks) beyond(end int64) (*mark, bool) {
	if len(m.valid) == 0 || m.valid[len(m.valid)-1].Size <= end {
		return nil, false
	}
	return m.valid[len(m.valid)-1], true
}
