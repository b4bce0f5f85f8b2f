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
	"cairn/domain/run"
)

// grow appends until the log is longer than what a verification folds inside its snapshot.
func grow(t *testing.T, base *dbtest.Database, d *db.DB) {
	t.Helper()
	stop := writers(t, base, 8, d)
	defer stop()
	for head := int64(0); head < 2500; time.Sleep(50 * time.Millisecond) {
		identity, err := d.Identity(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		head = identity.Head
	}
}

func TestReplayOfALongLog(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	busyTeam(t, d, plainly)
	grow(t, base, d)
	o := options(base)
	o.Scratch = dbtest.Scratch
	began := time.Now()
	report, err := audit.VerifyReplay(t.Context(), o)
	if err != nil || report.Events < 2500 {
		t.Fatalf("%+v, %v", report, err)
	}
	t.Logf("%d events in both orders in %v", report.Events, time.Since(began))
	conn := base.Conn(t, "")
	for _, order := range []audit.Order{audit.ByPosition, audit.ByStream} {
		if _, err := conn.Exec(t.Context(), "UPDATE view.run SET host = 'other' WHERE state = 'succeeded'"); err != nil {
			t.Fatal(err)
		}
		o.Orders = []audit.Order{order}
		_, err = audit.VerifyReplay(t.Context(), o)
		requireDifferent(t, err, "run", "run.started", "host")
	}
	if _, err := conn.Exec(t.Context(), "UPDATE view.run SET host = 'h' WHERE state = 'succeeded'"); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM replay_scratch.run) + (SELECT count(*) FROM replay_scratch.account)").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows are left in the borrowed schema: %v", left, err)
	}
}

func TestReplayOfALongLogNoticesDependenceOnArrival(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("the live rows depend on the order of arrival")
	first := func(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
		err := projection.Apply(ctx, q, r, e)
		if _, ok := e.(run.Queued); ok && r.Version == 1 {
			err = errors.Join(err, q.AgentSet(ctx, projectq.AgentSetParams{ID: r.TopicID, SpaceID: r.SpaceID, Model: r.StreamID.String(), RevisedAt: r.RecordedAt}))
		}
		return err
	}
	d := base.Open(t, dbtest.Server, func(o *db.Options) { o.Project = first })
	grow(t, base, d)
	o := options(base)
	o.Project = first
	_, err := audit.VerifyReplay(t.Context(), o)
	if different := requireDifferent(t, err, "agent", "run.queued", "model,revised_at"); different.Order != audit.ByStream {
		t.Errorf("found in order %q", different.Order)
	}
	requireSchemas(t, base)
}
