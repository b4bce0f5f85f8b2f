package event

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"
)

func leafRecord() Record {
	return Record{
		ID: ID{1}, StreamID: ID{2}, Version: 3, SpaceID: ID{4}, TopicID: ID{5}, Kind: "run.started", Schema: 1,
		Data: json.RawMessage(`{"epoch":1}`), Actor: "worker/w1", CommandID: ID{6}, CauseID: ID{7},
		TraceID: "0af7651916cd43dd8448eb211c80319c", RecordedAt: time.UnixMicro(1767323045000006).UTC(), LeafVersion: 1,
	}
}

// The vector was computed by an independent script from the description of encoding 1. It must never
// change: every log that was ever written depends on it.
func TestLeafGolden(t *testing.T) {
	r := leafRecord()
	const want = "560a75dff2641b1a592f5b2b5be3327ee3ad95c6ee3fcde71a809ba5157de134"
	if got := hex.EncodeToString(Leaf(&r)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLeafCoversEveryColumn changes each column alone; the position and the hash itself are not covered.
func TestLeafCoversEveryColumn(t *testing.T) {
	base := leafRecord()
	want := Leaf(&base)
	changes := map[string]func(*Record){
		"id":           func(r *Record) { r.ID[15]++ },
		"stream_id":    func(r *Record) { r.StreamID[15]++ },
		"version":      func(r *Record) { r.Version++ },
		"space_id":     func(r *Record) { r.SpaceID[15]++ },
		"topic_id":     func(r *Record) { r.TopicID[15]++ },
		"kind":         func(r *Record) { r.Kind += "x" },
		"schema":       func(r *Record) { r.Schema++ },
		"data":         func(r *Record) { r.Data = json.RawMessage(`{"epoch": 1}`) },
		"actor":        func(r *Record) { r.Actor += "x" },
		"command_id":   func(r *Record) { r.CommandID[15]++ },
		"cause_id":     func(r *Record) { r.CauseID[15]++ },
		"trace_id":     func(r *Record) { r.TraceID = "" },
		"recorded_at":  func(r *Record) { r.RecordedAt = r.RecordedAt.Add(time.Microsecond) },
		"leaf_version": func(r *Record) { r.LeafVersion++ },
		"borders":      func(r *Record) { r.Kind, r.Data = r.Kind+"{", r.Data[1:] },
	}
	for name, change := range changes {
		r := leafRecord()
		if change(&r); bytes.Equal(Leaf(&r), want) {
			t.Errorf("%s is not covered", name)
		}
	}
	same := leafRecord()
	same.Position, same.LeafHash = 9, []byte{1}
	same.RecordedAt = same.RecordedAt.In(time.FixedZone("x", 3600))
	if !bytes.Equal(Leaf(&same), want) {
		t.Error("position, hash or time zone entered the hash")
	}
}
