package audit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
	"cairn/db/internal/projectq"
	"cairn/db/projection"
	"cairn/domain/event"
)

func TestRebuildBesideWritersIsEqual(t *testing.T) {
	base := dbtest.New(t)
	busyTeam(t, base.Open(t, dbtest.Server), plainly)
	stop := writers(t, base, 8)
	o := options(base)
	var seen audit.ReplayProgress
	o.Progress = func(p audit.ReplayProgress) { seen = p }
	rebuilt, err := audit.Rebuild(t.Context(), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	if seen.Position == 0 || seen.Position != rebuilt.Position() || seen.Head == 0 || seen.Rate <= 0 || rebuilt.Events() != rebuilt.Position() {
		t.Errorf("progress %+v at position %d after %d events", seen, rebuilt.Position(), rebuilt.Events())
	}
	time.Sleep(200 * time.Millisecond)
	report, err := rebuilt.Compare(t.Context())
	if err != nil || report.Events < rebuilt.Events() {
		t.Errorf("while writers append: %v, %+v", err, report)
	}
	stop()
	before := rebuilt.Position()
	if err := rebuilt.CatchUp(t.Context()); err != nil || rebuilt.Position() <= before {
		t.Errorf("catch up from %d to %d: %v", before, rebuilt.Position(), err)
	}
	if _, err := rebuilt.Compare(t.Context()); err != nil {
		t.Error(err)
	}
	requireSchemas(t, base, rebuilt.Schema())
	if err := rebuilt.Close(); err != nil {
		t.Error(err)
	}
	requireSchemas(t, base)
}

func TestRebuildUpToAPosition(t *testing.T) {
	base := dbtest.New(t)
	busyTeam(t, base.Open(t, dbtest.Server), plainly)
	rebuilt, err := audit.Rebuild(t.Context(), options(base), 12)
	if err != nil {
		t.Fatal(err)
	}
	var messages, runs int
	err = base.Conn(t, "").QueryRow(t.Context(), "SELECT (SELECT count(*) FROM "+rebuilt.Schema()+".message), (SELECT count(*) FROM "+rebuilt.Schema()+".run)").Scan(&messages, &runs)
	// 2 for each account and the space, 1 agent, 2 roles, 1 conversation, then message and turn, and the run
	if err != nil || rebuilt.Position() != 12 || rebuilt.Events() != 12 || messages != 1 || runs != 0 {
		t.Errorf("at position %d: %d messages, %d runs, %v", rebuilt.Position(), messages, runs, err)
	}
	if _, err := rebuilt.Compare(t.Context()); err == nil {
		t.Error("compared a part of the log with the whole")
	}
	if _, err := rebuilt.Swap(t.Context(), audit.SwapOptions{}); err == nil {
		t.Error("swapped a part of the log in")
	}
	if err := rebuilt.Close(); err != nil {
		t.Error(err)
	}
	for _, until := range []int64{-1, 1 << 40} {
		if _, err := audit.Rebuild(t.Context(), options(base), until); err == nil {
			t.Errorf("rebuilt up to position %d", until)
		}
	}
	requireSchemas(t, base)
}

func TestInterruptedRebuildDropsItsSchema(t *testing.T) {
	base := dbtest.New(t)
	busyTeam(t, base.Open(t, dbtest.Server), plainly)
	ctx, cancel := context.WithCancel(t.Context())
	o := options(base)
	o.Project = func(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
		if r.Position == 20 {
			cancel()
		}
		return projection.Apply(ctx, q, r, e)
	}
	if _, err := audit.Rebuild(ctx, o, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	requireSchemas(t, base)
}

// TestRebuildDropsWhatKilledOnesLeft: a schema without a process goes, one with a process stays.
func TestRebuildDropsWhatKilledOnesLeft(t *testing.T) {
	base := dbtest.New(t)
	busyTeam(t, base.Open(t, dbtest.Server), plainly)
	abandoned := audit.NewBuildName()
	if err := db.MigrateView(t.Context(), base.URL(""), abandoned); err != nil {
		t.Fatal(err)
	}
	first, err := audit.Rebuild(t.Context(), options(base), 0)
	if err != nil {
		t.Fatal(err)
	}
	requireSchemas(t, base, first.Schema())
	second, err := audit.Rebuild(t.Context(), options(base), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Compare(t.Context()); err != nil {
		t.Errorf("the first of two rebuilds: %v", err)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	requireSchemas(t, base)
}
