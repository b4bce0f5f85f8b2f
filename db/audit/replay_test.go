package audit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
	"cairn/db/internal/projectq"
	"cairn/db/projection"
	"cairn/domain/event"
	"cairn/domain/run"
)

func TestReplayIsGreen(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	busyTeam(t, d, plainly)
	busyTeam(t, d, plainly)
	began := time.Now()
	report, err := audit.VerifyReplay(t.Context(), options(base))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events in %v", report.Events, time.Since(began))
	rows := map[string]int64{}
	for _, table := range report.Tables {
		rows[table.Table] = table.Rows
	}
	want := map[string]int64{"account": 4, "agent": 2, "agent_revision": 2, "claim": 6, "conversation": 2, "file": 2, "membership": 2, "message": 8, "run": 14, "run_changes": 6, "run_egress": 6, "space": 2, "task": 2, "tool_call": 12}
	for table, n := range want {
		if rows[table] != n {
			t.Errorf("compared %d rows of %s, want %d", rows[table], table, n)
		}
	}
	if len(rows) != len(want) || report.Events < 100 {
		t.Errorf("compared tables %v after %d events", rows, report.Events)
	}
	requireSchemas(t, base)
}

// requireSchemas checks that beside the live projections exactly these schemas of a rebuild exist.
func requireSchemas(t *testing.T, base *dbtest.Database, want ...string) {
	t.Helper()
	var got []string
	err := base.Conn(t, "").QueryRow(t.Context(), "SELECT coalesce(array_agg(nspname::text ORDER BY nspname), '{}') FROM pg_namespace WHERE nspname LIKE 'view\\_%'").Scan(&got)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("schemas %v, want %v", got, want)
	}
}

func TestReplayIsGreenWhileEightWritersAppend(t *testing.T) {
	base := dbtest.New(t)
	stop := writers(t, base, 8)
	var last int64
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
		report, err := audit.VerifyReplay(t.Context(), options(base))
		if err != nil {
			t.Error(err)
			break
		}
		last = report.Events
	}
	if wrote := stop(); last == 0 || wrote < 100 {
		t.Errorf("verified %d events, %d were written", last, wrote)
	}
}

// TestReplayIsGreenWhileSpacesAreErased: rows, events and keys must be those of one moment.
func TestReplayIsGreenWhileSpacesAreErased(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
			team := dbtest.NewTeam(t, d, "demo")
			team.Post(t, d, team.Converse(t, d), "text")
			eraseSpace(t, d, team)
			eraseAccount(t, d, team.Account)
		}
	}()
	for verified := 0; ; verified++ {
		if _, err := audit.VerifyReplay(t.Context(), options(base)); err != nil {
			t.Errorf("verification %d: %v", verified, err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestReplayNamesWhatDiffers(t *testing.T) {
	invented := dbtest.NewID()
	for _, test := range []struct {
		name, sql, table, event string
		columns                 string
	}{
		{"changed", "UPDATE tool_call SET output = 'other' WHERE call = 'c1' AND run_id = (SELECT id FROM run WHERE state = 'succeeded')", "tool_call", "run.tool_returned", "output"},
		{"changed once", "UPDATE run SET model = 'other' WHERE state = 'succeeded'", "run", "run.queued", "model"},
		{"null instead of empty", "UPDATE conversation SET title = NULL", "conversation", "conversation.opened", "title"},
		{"missing", "DELETE FROM message WHERE turn_number = 2", "message", "conversation.turn_ended", ""},
		{"extra, once written", "INSERT INTO membership SELECT s.id, a.id, 'member', s.created_at FROM space s, account a WHERE NOT EXISTS (SELECT FROM membership m WHERE m.account_id = a.id)", "membership", "space.member_removed", ""},
		{"extra, never written", "INSERT INTO claim VALUES ('" + invented.String() + "', 'email', NULL, NULL, 1)", "claim", "", ""},
		{"extra column", "ALTER TABLE agent ADD COLUMN extra text", "agent", "agent.revised", "extra"},
		{"missing table", "DROP TABLE claim", "claim", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			base := dbtest.New(t)
			base.SkipReplay("the test breaks the projections")
			busyTeam(t, base.Open(t, dbtest.Server), plainly)
			conn := base.Conn(t, "")
			if _, err := conn.Exec(t.Context(), "SET search_path = view; "+test.sql); err != nil {
				t.Fatal(err)
			}
			_, err := audit.VerifyReplay(t.Context(), options(base))
			requireDifferent(t, err, test.table, test.event, test.columns)
			requireSchemas(t, base)
		})
	}
}

func requireDifferent(t *testing.T, err error, table, kind, columns string) *audit.Different {
	t.Helper()
	different, ok := errors.AsType[*audit.Different](err)
	if !ok {
		t.Fatalf("no difference found: %v", err)
	}
	got := ""
	if different.Event != nil {
		got = different.Event.Kind
	}
	if different.Table != table || got != kind || strings.Join(different.Columns, ",") != columns {
		t.Errorf("difference %v in columns %v, event %q; want table %s, event %q, columns %q", different, different.Columns, got, table, kind, columns)
	}
	if kind != "" && (len(different.Key) == 0 || different.Event.Position == nil || different.Event.Version == 0) {
		t.Errorf("difference without key or place: %+v, %+v", different, different.Event)
	}
	t.Log(different)
	return different
}

func TestReplayNoticesAChangedApply(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("the live rows are made by another Apply")
	forgets := func(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
		if _, ok := e.(run.Started); ok {
			return q.RunTouch(ctx, projectq.RunTouchParams{ID: r.StreamID, Version: r.Version})
		}
		return projection.Apply(ctx, q, r, e)
	}
	busyTeam(t, base.Open(t, dbtest.Server, func(o *db.Options) { o.Project = forgets }), plainly)
	_, err := audit.VerifyReplay(t.Context(), options(base))
	requireDifferent(t, err, "run", "run.started", "epoch,host,started_at,worker")
	o := options(base)
	o.Project = forgets
	if _, err := audit.VerifyReplay(t.Context(), o); err != nil {
		t.Errorf("with the Apply that made them: %v", err)
	}
}

// TestReplayNoticesDependenceOnArrival uses an Apply in which every run overwrites a column of its space: the
// last to arrive wins. Folding by position gives the same row again; folding by stream does not.
func TestReplayNoticesDependenceOnArrival(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("the live rows depend on the order of arrival")
	last := func(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
		if _, ok := e.(run.Queued); ok {
			return errors.Join(projection.Apply(ctx, q, r, e),
				q.AgentSet(ctx, projectq.AgentSetParams{ID: r.SpaceID, SpaceID: r.SpaceID, Model: r.StreamID.String(), RevisedAt: r.RecordedAt}))
		}
		return projection.Apply(ctx, q, r, e)
	}
	busyTeam(t, base.Open(t, dbtest.Server, func(o *db.Options) { o.Project = last }), plainly)
	o := options(base)
	o.Project = last
	_, err := audit.VerifyReplay(t.Context(), o)
	different := requireDifferent(t, err, "agent", "run.queued", "model,revised_at")
	if different.Order != audit.ByStream {
		t.Errorf("found in order %q", different.Order)
	}
	o.Orders = []audit.Order{audit.ByPosition}
	if _, err := audit.VerifyReplay(t.Context(), o); err != nil {
		t.Errorf("by position alone it cannot show: %v", err)
	}
}

// TestReplayNamesAnEventThatApplyRefuses has rows that collide when they are written again.
func TestReplayNamesAnEventThatApplyRefuses(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("the log is folded by an Apply that fails")
	busyTeam(t, base.Open(t, dbtest.Server), plainly)
	o := options(base)
	o.Project = func(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
		if r.Kind == "run.cancelled" {
			return q.RunInsert(ctx, projectq.RunInsertParams{ID: r.StreamID, QueuedAt: r.RecordedAt})
		}
		return projection.Apply(ctx, q, r, e)
	}
	_, err := audit.VerifyReplay(t.Context(), o)
	unfoldable, ok := errors.AsType[*audit.Unfoldable](err)
	if !ok || unfoldable.Event.Kind != "run.cancelled" {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	requireSchemas(t, base)
}

// TestReplayNoticesThatTheLogLacksEvents: a gap, and a tail, that a join would pass over.
func TestReplayNoticesThatTheLogLacksEvents(t *testing.T) {
	for _, where := range []string{"= 30", "> 30"} {
		base := dbtest.New(t)
		base.SkipReplay("the test takes events out of the log")
		d := base.Open(t, dbtest.Server)
		busyTeam(t, d, plainly)
		for age := new(time.Duration); age != nil; time.Sleep(10 * time.Millisecond) {
			var err error
			if age, err = d.UnsequencedAge(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := base.Conn(t, "").Exec(t.Context(), "DELETE FROM log.event WHERE id IN (SELECT event_id FROM log.log_position WHERE position "+where+")"); err != nil {
			t.Fatal(err)
		}
		_, err := audit.VerifyReplay(t.Context(), options(base))
		_, rerr := audit.Rebuild(t.Context(), options(base), 0)
		for _, err := range []error{err, rerr} {
			b, ok := errors.AsType[*audit.Broken](err)
			if !ok || b.Position == nil || *b.Position != 30 && *b.Position != 31 {
				t.Errorf("events at positions %s are gone: %v", where, err)
			}
		}
		requireSchemas(t, base)
	}
}
