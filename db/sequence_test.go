package db_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/dbtest"
)

// unplaced commits n rows that wait for a position. They have no event: only the sequencing is looked at.
func unplaced(t testing.TB, conn *pgx.Conn, n int) {
	t.Helper()
	_, err := conn.Exec(context.Background(), `INSERT INTO log.unsequenced (event_id, stream_id, space_id, topic_id)
		SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid() FROM generate_series(1, $1)`, n)
	if err != nil {
		t.Fatal(err)
	}
}

func sequencer(t testing.TB, base *dbtest.Database) db.Sequencer {
	t.Helper()
	base.SkipReplay("the test places events that do not exist")
	s, err := db.NewSequencer(base.URL(dbtest.Server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Disconnect)
	return s
}

func sequence(t testing.TB, s db.Sequencer) time.Duration {
	t.Helper()
	s.Hurry()
	began := time.Now()
	if err := s.Sequence(context.Background()); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// snapshot keeps dead rows from being cleaned, as a dump or a forgotten transaction does.
func snapshot(t testing.TB, base *dbtest.Database) {
	t.Helper()
	reader := base.Conn(t, "")
	if _, err := reader.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM log.unsequenced"); err != nil {
		t.Fatal(err)
	}
}

// TestOldSnapshotDoesNotSlowSequencing is the gate of the low cursor: after 100,000 events under a snapshot that
// keeps every dead row, a batch may take at most four times as long as before.
func TestOldSnapshotDoesNotSlowSequencing(t *testing.T) {
	base := dbtest.New(t)
	conn, s := base.Conn(t, ""), sequencer(t, base)
	round := func() time.Duration {
		unplaced(t, conn, 900) // fewer than a full batch: one call
		return sequence(t, s)
	}
	median := func() time.Duration {
		times := make([]time.Duration, 9)
		for i := range times {
			times[i] = round()
		}
		slices.Sort(times)
		return times[len(times)/2]
	}
	snapshot(t, base)
	before := median()
	for range 110 {
		round()
	}
	after := median()
	if s.Low() < 50_000 { // transactions of other databases may hold it for moments
		t.Errorf("the low cursor stayed at %d although no writer is open: readers must not hold it", s.Low())
	}
	s.Disconnect() // starts again at 0, and walks over every dead row
	unplaced(t, conn, 900)
	without := sequence(t, s)
	t.Logf("batch before %v, after 115,000 events under a snapshot %v; from 0: %v", before, after, without)
	if after > 4*before {
		t.Errorf("a batch takes %v, %v before", after, before)
	}
}

// TestLowCursorWaitsForWriters: it must not pass a value that an open transaction has drawn.
func TestLowCursorWaitsForWriters(t *testing.T) {
	base := dbtest.New(t)
	conn, s := base.Conn(t, ""), sequencer(t, base)
	writer := base.Conn(t, "")
	tx, err := writer.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unplaced(t, writer, 1)
	unplaced(t, conn, 100)
	for range 4 {
		sequence(t, s)
	}
	if s.Low() != 0 {
		t.Fatalf("the low cursor passed an open writer: %d", s.Low())
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		sequence(t, s)
	}
	var placed, low int64 = 0, s.Low()
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM log.log_position").Scan(&placed); err != nil {
		t.Fatal(err)
	}
	if placed != 101 || low != 101 {
		t.Fatalf("%d of 101 placed, low cursor %d", placed, low)
	}
}

// TestSequencerStartsOverOnANewConnection: what it reconnects to may be a database of the past.
func TestSequencerStartsOverOnANewConnection(t *testing.T) {
	base := dbtest.New(t)
	conn, s := base.Conn(t, ""), sequencer(t, base)
	unplaced(t, conn, 50)
	sequence(t, s)
	sequence(t, s)
	if s.Low() != 50 {
		t.Fatalf("low cursor %d", s.Low())
	}
	// A restored database has drawn fewer values.
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend($1); ", s.PID()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "ALTER SEQUENCE log.unsequenced_seq_seq RESTART WITH 20"); err != nil {
		t.Fatal(err)
	}
	unplaced(t, conn, 5)
	if err := s.Sequence(t.Context()); err == nil {
		t.Fatal("the broken connection was not noticed")
	}
	sequence(t, s)
	var placed int64
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM log.log_position").Scan(&placed); err != nil {
		t.Fatal(err)
	}
	if placed != 55 {
		t.Fatalf("%d of 55 placed: rows below the old low cursor were skipped", placed)
	}
}

// TestEmptyPollWritesNothing: no WAL record, and no transaction id that would write one at commit.
func TestEmptyPollWritesNothing(t *testing.T) {
	base := dbtest.New(t)
	conn := base.Conn(t, dbtest.Server)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	// The first call in a fresh copy may clean pages of the catalog, which is not its own doing.
	if _, err := tx.Exec(t.Context(), "SELECT log.log_sequence(1000, 0)"); err != nil {
		t.Fatal(err)
	}
	var plan string
	rows, err := tx.Query(t.Context(), "EXPLAIN (ANALYZE, WAL, COSTS OFF, TIMING OFF, FORMAT TEXT) SELECT log.log_sequence(1000, 0)")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan += line + "\n"
	}
	var id *string
	if err := tx.QueryRow(t.Context(), "SELECT pg_current_xact_id_if_assigned()::text").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if id != nil || strings.Contains(plan, "WAL:") {
		t.Errorf("an empty poll writes: transaction %v, plan\n%s", id, plan)
	}
}
