package event

import (
	"crypto/sha256"
	"encoding/binary"
)

// LeafVersion is the encoding that new leaves use.
const LeafVersion int16 = 1

// Leaf returns the hash that stands for a record in the log's Merkle tree. Encoding 1 is SHA-256 over the
// bytes "cairn/event/1\0" and then these columns in this order, each as an 8-byte big-endian length and
// its bytes:
//
//	id, stream_id          16 bytes each
//	version                8 bytes, big-endian
//	space_id, topic_id     16 bytes each
//	kind                   UTF-8
//	schema                 2 bytes, big-endian
//	data                   the stored bytes
//	actor                  UTF-8
//	command_id, cause_id   16 bytes each
//	trace_id               UTF-8
//	recorded_at            8 bytes, big-endian: microseconds since 1970-01-01 UTC
//	leaf_version           2 bytes, big-endian
//
// Anyone can recompute it from the columns; the position is not part of it, the tree binds that.
func Leaf(r *Record) []byte {
	h := sha256.New()
	h.Write([]byte("cairn/event/1\x00"))
	var length [8]byte
	field := func(value []byte) {
		binary.BigEndian.PutUint64(length[:], uint64(len(value)))
		h.Write(length[:])
		h.Write(value)
	}
	var number [8]byte
	int64Field := func(n int64) {
		binary.BigEndian.PutUint64(number[:], uint64(n))
		field(number[:])
	}
	int16Field := func(n int16) { field(binary.BigEndian.AppendUint16(nil, uint16(n))) }

	field(r.ID[:])
	field(r.StreamID[:])
	int64Field(r.Version)
	field(r.SpaceID[:])
	field(r.TopicID[:])
	field([]byte(r.Kind))
	int16Field(r.Schema)
	field(r.Data)
	field([]byte(r.Actor))
	field(r.CommandID[:])
	field(r.CauseID[:])
	field([]byte(r.TraceID))
	int64Field(r.RecordedAt.UnixMicro())
	int16Field(r.LeafVersion)
	return h.Sum(nil)
}
