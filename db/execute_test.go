package db_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
)

// positioned waits until every event has a position and returns the log.
func positioned(t testing.TB, d *db.DB, want int) []event.Record {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		age, lookup := d.UnsequencedAge(t.Context()) // before the log is read: what is placed by then is in it
		records, err := d.Since(t.Context(), 0, db.Scope{}, 100000)
		if err != nil {
			t.Fatal(err)
		}
		if lookup == nil && age == nil && len(records) >= want {
			return records
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d events have positions, want %d", len(records), want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func turns(state any) int {
	s := state.(conversation.State)
	return int(s.Started) + len(s.Waiting)
}

func TestMessagesOfTwoProcessesStayInOrder(t *testing.T) {
	base := dbtest.New(t)
	one, two := base.Open(t, dbtest.Server), base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, one, "demo")
	id := team.Converse(t, one)

	const each = 25
	var wg sync.WaitGroup
	for i, d := range []*db.DB{one, two} {
		for n := range each {
			wg.Go(func() {
				_, err := d.Execute(context.Background(), team.Message(id, fmt.Sprintf("%d-%d", i, n)), dbtest.Meta(team.Actor()))
				if err != nil {
					t.Errorf("message: %v", err)
				}
			})
		}
	}
	wg.Wait()
	state, _, err := one.Load(t.Context(), conversation.Stream(id, team.Space))
	if err != nil {
		t.Fatal(err)
	}
	if got := turns(state); got != 2*each {
		t.Fatalf("%d turns, want %d", got, 2*each)
	}
	versions := map[event.ID]int64{}
	for i, r := range positioned(t, one, 0) {
		if r.Position != int64(i+1) {
			t.Fatalf("position %d at place %d", r.Position, i+1)
		}
		if r.Version != versions[r.StreamID]+1 {
			t.Fatalf("stream %s: version %d after %d", r.StreamID, r.Version, versions[r.StreamID])
		}
		versions[r.StreamID] = r.Version
	}
}

func TestIdempotencyKeyRaced(t *testing.T) {
	base := dbtest.New(t)
	replicas := []*db.DB{base.Open(t, dbtest.Server), base.Open(t, dbtest.Server)}
	team := dbtest.NewTeam(t, replicas[0], "demo")
	id := team.Converse(t, replicas[0])

	answers := make([]string, 100)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			meta := dbtest.Meta(team.Actor())
			meta.Key, meta.Request = "same", []byte(`{"text":"once"}`)
			result, err := replicas[i%2].Execute(context.Background(), team.Message(id, "once"), meta)
			if err != nil {
				t.Errorf("race: %v", err)
			}
			var compact map[string]string
			if err := json.Unmarshal(result.Answer, &compact); err != nil {
				t.Errorf("answer %s: %v", result.Answer, err)
			}
			answers[i] = fmt.Sprint(compact)
		})
	}
	wg.Wait()
	for _, answer := range answers {
		if answer != answers[0] {
			t.Fatalf("answers differ: %s and %s", answer, answers[0])
		}
	}
	before := len(positioned(t, replicas[0], 0))
	meta := dbtest.Meta(team.Actor())
	meta.Key, meta.Request = "same", []byte(`{"text":"other"}`)
	_, err := replicas[1].Execute(t.Context(), team.Message(id, "other"), meta)
	if !fault.HasCode(err, "idempotency_key_reused") {
		t.Fatalf("other body under the same key: %v", err)
	}
	if after := len(positioned(t, replicas[0], 0)); after != before {
		t.Fatalf("the refused request wrote %d events", after-before)
	}
	state, _, err := replicas[0].Load(t.Context(), conversation.Stream(id, team.Space))
	if err != nil {
		t.Fatal(err)
	}
	if got := turns(state); got != 1 {
		t.Fatalf("%d turns, want 1", got)
	}
}

func TestTailSeesEverythingOnce(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, d, "demo")
	id := team.Converse(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen []int64
	done := make(chan error, 1)
	go func() {
		done <- d.Tail(ctx, db.Cursor{}, db.Scope{Topic: id}, func(records []event.Record) error {
			for _, r := range records {
				seen = append(seen, r.Position)
			}
			if len(seen) >= 1+2*20+1 {
				cancel()
			}
			return nil
		})
	}()
	for i := range 20 {
		team.Post(t, d, id, fmt.Sprint(i))
	}
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("saw %d", len(seen))
	}
	for i := 1; i < len(seen); i++ {
		if seen[i] <= seen[i-1] {
			t.Fatalf("position %d after %d", seen[i], seen[i-1])
		}
	}
}

// What is folded from the log weighs as much as what was decided here: its text counts, wherever it lies.
func TestTextOfBlobsCountsInTheCache(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, d, "demo")
	c := team.Converse(t, d)
	const size = 100_000
	for i := range int64(3) {
		posted := team.Post(t, d, c, strings.Repeat("x", size))
		if weight := d.StatesWeight(); weight < (i+1)*size {
			t.Errorf("after %d messages of %d bytes the cache weighs %d", i+1, size, weight)
		}
		other := base.Open(t, dbtest.Worker)
		if _, _, err := other.Load(t.Context(), run.Stream(posted.Run, team.Space, c)); err != nil || other.StatesWeight() < size {
			t.Errorf("loaded: %d, %v", other.StatesWeight(), err)
		}
	}
}

func TestDryRunDecidesAndWritesNothing(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, d, "demo")
	id := team.Converse(t, d)
	before := len(positioned(t, d, 0))
	changes, err := d.DryRun(t.Context(), team.Message(id, "would this do?"), dbtest.Meta(team.Actor()))
	if err != nil || len(changes) != 2 {
		t.Fatalf("%d changes, %v; want those of the conversation and of the run", len(changes), err)
	}
	if _, err := d.DryRun(t.Context(), team.Message(id, ""), dbtest.Meta(team.Actor())); !fault.Is(err, fault.Invalid) {
		t.Errorf("an empty message: %v", err)
	}
	if after := len(positioned(t, d, 0)); after != before {
		t.Errorf("the dry runs wrote %d events", after-before)
	}
}
