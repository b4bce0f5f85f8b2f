package audit_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"cairn/db/audit"
	"cairn/db/dbtest"
	"cairn/domain/event"
)

// BenchmarkVerify reports events per second of log verify and of the checkpointer, over events of 500 bytes
// in streams of ten.
func BenchmarkVerify(b *testing.B) {
	const n = 200_000
	base := dbtest.New(b)
	base.SkipReplay("the events are made up")
	file := filepath.Join(b.TempDir(), "checkpoints.log")
	fill(b, base, n)
	d := base.Open(b, dbtest.Server)
	begin := time.Now()
	if made, err := audit.NewCheckpointer(d, file, quiet).Once(b.Context()); err != nil || made.Size != n {
		b.Fatal(made, err)
	}
	signed := time.Since(begin)
	conn := base.Conn(b, dbtest.Server)
	for b.Loop() {
		report, err := audit.Verify(b.Context(), conn, audit.VerifyOptions{Verifier: base.Keys.Verifier, CheckpointFile: file})
		if err != nil || report.Signed != n {
			b.Fatal(report, err)
		}
	}
	b.ReportMetric(n/signed.Seconds(), "signed/s")
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// fill copies a valid log into the tables, as if it had been appended.
func fill(b *testing.B, base *dbtest.Database, n int) {
	conn := base.Conn(b, "")
	var stream event.ID
	at := time.Now().UTC().Truncate(time.Microsecond)
	data := []byte(`{"text":"` + strings.Repeat("x", 480) + `"}`)
	var events, positions, streams [][]any
	for i := range n {
		if i%10 == 0 {
			stream = dbtest.NewID()
			streams = append(streams, []any{stream, "run", stream, stream, 10})
		}
		r := event.Record{
			ID: event.ID(uuid.Must(uuid.NewV7())), StreamID: stream, Version: int64(i%10 + 1), SpaceID: stream, TopicID: stream, Kind: "run.thing_happened", Schema: 1,
			Data: data, Actor: "system", CommandID: stream, RecordedAt: at, LeafVersion: event.LeafVersion,
		}
		events = append(events, []any{r.ID, r.StreamID, r.Version, r.SpaceID, r.TopicID, r.Kind, r.Schema, r.Data, r.Actor, r.CommandID, r.CauseID, r.TraceID, r.RecordedAt, r.LeafVersion, event.Leaf(&r)})
		positions = append(positions, []any{int64(i + 1), r.ID, r.SpaceID, r.TopicID, r.StreamID})
	}
	for _, table := range []struct {
		name    string
		columns []string
		rows    [][]any
	}{
		{"event", []string{"id", "stream_id", "version", "space_id", "topic_id", "kind", "schema", "data", "actor", "command_id", "cause_id", "trace_id", "recorded_at", "leaf_version", "leaf_hash"}, events},
		{"log_position", []string{"position", "event_id", "space_id", "topic_id", "stream_id"}, positions},
		{"stream", []string{"id", "kind", "space_id", "topic_id", "version"}, streams},
	} {
		if _, err := conn.CopyFrom(b.Context(), pgx.Identifier{"log", table.name}, table.columns, pgx.CopyFromRows(table.rows)); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := conn.Exec(b.Context(), "UPDATE log.log_head SET last = $1", n); err != nil {
		b.Fatal(err)
	}
}
