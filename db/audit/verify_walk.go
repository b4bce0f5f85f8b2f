package audit

import (
	"bytes"
	"context"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"cairn/db/internal/logq"
	"cairn/domain/event"
)

// walkPage is how many positions are read with one query.
const walkPage = 10_000

// walk goes through all positions in order and stops at the first bad one.
func (v *verification) walk(ctx context.Context) error {
	if err := v.checkMarksAt(0); err != nil {
		return err
	}
	for {
		from := v.tree.size
		hashes, err := v.storedHashes(ctx, from)
		if err != nil {
			return err
		}
		err = eachRow(ctx, v.tx, func(r *row) error { return v.checkPlaced(r, hashes) }, placedRows, from, walkPage)
		if err != nil {
			return fmt.Errorf("log verify: %w", err)
		}
		if v.Progress != nil {
			v.Progress(v.tree.size, v.report.Head)
		}
		if v.tree.size-from < walkPage {
			v.report.Events, v.report.Root = v.tree.size, v.tree.root().String()
			return nil
		}
	}
}

func (v *verification) checkPlaced(r *row, hashes *storedHashes) error {
	if want := v.tree.size + 1; r.position != want {
		return broken("positions must be dense", want, fmt.Sprintf("%d as the next one", r.position)).at(want)
	}
	leaf, err := v.checkRow(r)
	if err != nil {
		return err
	}
	index := v.tree.stored()
	for i, hash := range v.tree.add(leaf) {
		if err := hashes.check(index+int64(i), hash); err != nil {
			return err.in(r)
		}
	}
	return v.checkMarksAt(r.position)
}

// checkRow checks a place against its event, and the event against its hash and its stream.
func (v *verification) checkRow(r *row) ([]byte, error) {
	e := r.record
	if e == nil {
		return nil, broken("the event of this place", "a row in log.event", "none").in(r)
	}
	for _, c := range []struct {
		name            string
		expected, found event.ID
	}{{"space_id", e.SpaceID, r.space}, {"topic_id", e.TopicID, r.topic}, {"stream_id", e.StreamID, r.stream}} {
		if c.expected != c.found {
			return nil, broken(c.name+" beside the position must be the event's", c.expected, c.found).in(r)
		}
	}
	if e.LeafVersion != event.LeafVersion {
		return nil, broken("leaf_version is not known: it was altered, or a later version of Cairn wrote it", event.LeafVersion, e.LeafVersion).in(r)
	}
	leaf := event.Leaf(e)
	if !bytes.Equal(leaf, e.LeafHash) {
		return nil, broken("the columns do not have the hash in leaf_hash", fmt.Sprintf("%x", e.LeafHash), fmt.Sprintf("%x", leaf)).in(r)
	}
	if want := v.versions[e.StreamID] + 1; e.Version != want {
		return nil, broken("versions of a stream must ascend by one", want, e.Version).in(r)
	}
	v.versions[e.StreamID] = e.Version
	return leaf, v.checkBlobs(e)
}

// storedHashes is a page of log.log_tree.
type storedHashes struct {
	from  int64 // index of the first
	bound int64 // hashes from here on are not stored yet
	rows  []logq.LogLogTree
}

// storedHashes reads what the checkpointer stored for a page of positions.
func (v *verification) storedHashes(ctx context.Context, from int64) (*storedHashes, error) {
	to := min(from+walkPage, v.marks.stored)
	h := &storedHashes{from: tlog.StoredHashCount(from), bound: tlog.StoredHashCount(to)}
	if to <= from {
		return h, nil
	}
	rows, err := v.q.TreeRange(ctx, logq.TreeRangeParams{First: h.from, Bound: h.bound})
	if err != nil {
		return nil, fmt.Errorf("stored tree: %w", err)
	}
	h.rows = rows
	return h, nil
}

// check compares the next hash with the stored one. Indices come in order, so rows are consumed.
func (h *storedHashes) check(index int64, want tlog.Hash) *Broken {
	if index >= h.bound {
		return nil
	}
	what := fmt.Sprintf("stored hash %d of the tree", index)
	if len(h.rows) == 0 || h.rows[0].Index != index {
		return broken(what, want, "none")
	}
	found := h.rows[0].Hash
	h.rows = h.rows[1:]
	if !bytes.Equal(found, want[:]) {
		return broken(what, want, tlog.Hash(found))
	}
	return nil
}
