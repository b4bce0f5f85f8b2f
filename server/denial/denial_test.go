package denial_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"cairn/db/dbtest"
	"cairn/domain/event"
	"cairn/server/denial"
)

// TestFlood refuses far more than may be recorded one by one: ten events, and one with the rest. What does not exist is
// not refused, and whoever refuses never waits, even when nobody records.
func TestFlood(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team, other := dbtest.NewTeam(t, d, "demo"), dbtest.NewTeam(t, d, "demo")
	r := denial.New(denial.Options{DB: d, Log: slog.New(slog.DiscardHandler), Minute: time.Hour})
	one := denial.Denial{Account: team.Account, Actor: team.Actor(), Route: "GET /api/v1/x", Rule: "role_too_low", Target: team.Space}
	const flood = 3000
	began := time.Now()
	for range flood {
		r.Known(one)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("%d refusals that nobody recorded held those who refuse for %v", flood, took)
	}
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	running.Go(func() { r.Run(ctx) })
	foreign := denial.Denial{Account: other.Account, Actor: other.Actor(), Route: "GET /api/v1/spaces/{space}/events", Rule: "space_not_found", Target: team.Space, Exists: true}
	nothing, own := foreign, foreign
	nothing.Target, own.Target = dbtest.NewID(), other.Space
	gone := one
	gone.Account = dbtest.NewID()
	calm := denial.New(denial.Options{DB: d, Log: slog.New(slog.DiscardHandler), Minute: time.Hour}) // its queue has room
	running.Go(func() { calm.Run(ctx) })
	for _, d := range []denial.Denial{nothing, own, gone, foreign} {
		calm.Known(d)
	}
	stop()
	running.Wait()
	count := func(id event.ID) (denied int, counted int64) {
		t.Helper()
		records, err := d.Stream(t.Context(), id, 1, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			var data struct{ Denials int64 }
			if err := json.Unmarshal(record.Data, &data); err != nil {
				t.Fatal(err)
			}
			switch record.Kind {
			case "account.action_denied":
				denied++
			case "account.denials_counted":
				counted += data.Denials
			}
		}
		return denied, counted
	}
	if denied, counted := count(team.Account); denied != 10 || counted != flood-10 {
		t.Errorf("%d refusals are %d events and a count of %d", flood, denied, counted)
	}
	if denied, counted := count(other.Account); denied != 1 || counted != 0 {
		t.Errorf("one refusal of three tries, of which one is of a thing of others: %d events and a count of %d", denied, counted)
	}
}
