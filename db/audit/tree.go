package audit

import (
	"context"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"

	"cairn/db/internal/logq"
)

// tree is the right edge of a Merkle tree (RFC 6962): enough to add leaves and to know the root, in memory
// that grows with the logarithm of the size. The zero tree is empty.
type tree struct {
	size int64
	edge []tlog.Hash // roots of the complete subtrees from left to right, one for each bit set in size
}

// add appends a leaf and returns the hashes that are stored for it, in the numbering of package tlog: the
// first has index stored() as it was before, the others follow without gap.
func (t *tree) add(leafHash []byte) []tlog.Hash {
	h := tlog.RecordHash(leafHash)
	stored := []tlog.Hash{h}
	for range bits.TrailingZeros64(^uint64(t.size)) {
		left := len(t.edge) - 1
		h = tlog.NodeHash(t.edge[left], h)
		t.edge = t.edge[:left]
		stored = append(stored, h)
	}
	t.edge = append(t.edge, h)
	t.size++
	return stored
}

// stored is how many hashes package tlog stores for the tree: the index of the next one.
func (t *tree) stored() int64 { return tlog.StoredHashCount(t.size) }

// root is the tree's Merkle tree hash.
func (t *tree) root() tlog.Hash {
	if t.size == 0 {
		empty, _ := tlog.TreeHash(0, nil) // reads nothing
		return empty
	}
	h := t.edge[len(t.edge)-1]
	for i := len(t.edge) - 2; i >= 0; i-- {
		h = tlog.NodeHash(t.edge[i], h)
	}
	return h
}

// loadTree reads the right edge of the stored tree of a size.
func loadTree(ctx context.Context, q *logq.Queries, size int64) (*tree, error) {
	t := &tree{size: size}
	read := func(indexes []int64) ([]tlog.Hash, error) {
		rows, err := q.TreeHashes(ctx, indexes)
		if err != nil {
			return nil, err
		}
		found := map[int64][]byte{}
		for _, row := range rows {
			found[row.Index] = row.Hash
		}
		for _, index := range indexes {
			if len(found[index]) != tlog.HashSize {
				return nil, fmt.Errorf("stored hash %d is missing: run 'cairn log verify'", index)
			}
			t.edge = append(t.edge, tlog.Hash(found[index]))
		}
		return t.edge, nil
	}
	if _, err := tlog.TreeHash(size, tlog.HashReaderFunc(read)); err != nil {
		return nil, fmt.Errorf("tree of size %d: %w", size, err)
	}
	return t, nil
}
