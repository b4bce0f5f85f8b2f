package audit_test

import (
	"io"
	"slices"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
)

// copied is what COPY sends of the same rows that a replay reads.
const copied = `COPY (SELECT p.position, e.* FROM (SELECT position, event_id FROM log.log_position WHERE position > 0 ORDER BY position) p
	JOIN log.event e ON e.id = p.event_id ORDER BY p.position) TO STDOUT`

// TestReplayStreamAgainstCopy measures reading the log in batches against COPY of the same rows, in the same
// run; the gate is 0.3.
func TestReplayStreamAgainstCopy(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for seconds")
	}
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	stop := writers(t, base, 8)
	time.Sleep(4 * time.Second)
	stop()
	conn := base.Conn(t, "")
	if _, err := conn.Exec(t.Context(), "VACUUM (ANALYZE) log.event, log.log_position"); err != nil {
		t.Fatal(err)
	}
	var ratios, folds []float64
	var events int
	for range 5 {
		began := time.Now()
		if _, err := conn.PgConn().CopyTo(t.Context(), io.Discard, copied); err != nil {
			t.Fatal(err)
		}
		floor := time.Since(began)
		began, events = time.Now(), 0
		for after := int64(0); ; {
			records, err := d.Since(t.Context(), after, db.Scope{}, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if len(records) == 0 {
				break
			}
			events, after = events+len(records), records[len(records)-1].Position
		}
		ratios = append(ratios, float64(floor)/float64(time.Since(began)))
		began = time.Now()
		rebuilt, err := audit.Rebuild(t.Context(), options(base), 0)
		if err != nil {
			t.Fatal(err)
		}
		folds = append(folds, float64(rebuilt.Events())/time.Since(began).Seconds())
		if err := rebuilt.Close(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(ratios)
	slices.Sort(folds)
	t.Logf("%d events; stream against COPY %.2f (%.2f to %.2f); rebuild %.0f events/s (%.0f to %.0f)",
		events, ratios[2], ratios[0], ratios[4], folds[2], folds[0], folds[4])
	if ratios[2] < 0.3 {
		t.Errorf("reading the log is %.2f of COPY, the gate is 0.3", ratios[2])
	}
}

func BenchmarkVerifyReplayOfASmallLog(b *testing.B) {
	base := dbtest.New(b)
	d := base.Open(b, dbtest.Server)
	team := dbtest.NewTeam(b, d, "demo")
	id := team.Converse(b, d)
	for range 10 {
		team.Post(b, d, id, "text")
	}
	o, best := options(base), time.Hour
	o.Scratch = dbtest.Scratch
	for b.Loop() {
		began := time.Now()
		if _, err := audit.VerifyReplay(b.Context(), o); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(began))
	}
	b.ReportMetric(float64(best.Microseconds())/1000, "best-ms")
}
