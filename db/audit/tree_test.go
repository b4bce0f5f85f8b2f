package audit

import (
	"encoding/binary"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// The tree must be the one of package tlog at every size: hashes, numbering and root.
func TestTreeIsThatOfTlog(t *testing.T) {
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			hashes[i] = stored[index]
		}
		return hashes, nil
	})
	var own tree
	for n := range int64(300) {
		want, err := tlog.TreeHash(n, reader)
		if err != nil {
			t.Fatal(err)
		}
		if own.root() != want || own.stored() != int64(len(stored)) {
			t.Fatalf("size %d: root %s, want %s; %d hashes, want %d", n, own.root(), want, own.stored(), len(stored))
		}
		leaf := binary.BigEndian.AppendUint64(make([]byte, 24), uint64(n))
		hashes, err := tlog.StoredHashes(n, leaf, reader)
		if err != nil {
			t.Fatal(err)
		}
		got := own.add(leaf)
		if len(got) != len(hashes) {
			t.Fatalf("leaf %d: %d hashes, want %d", n, len(got), len(hashes))
		}
		for i := range got {
			if got[i] != hashes[i] {
				t.Fatalf("leaf %d, hash %d differs", n, i)
			}
		}
		stored = append(stored, got...)
	}
}
