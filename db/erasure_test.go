package db_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/account"
	"cairn/domain/agent"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
	"cairn/domain/space"
)

func load[S any](t testing.TB, d *db.DB, stream event.Ref) S {
	t.Helper()
	state, _, err := d.Load(context.Background(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return state.(S)
}

func eraseSpace(t testing.TB, d *db.DB, team dbtest.Team) {
	t.Helper()
	dbtest.Must(t, d, team.Actor(), space.Erase{Space: team.Space, Claim: load[space.State](t, d, space.Stream(team.Space)).Claim})
}

func eraseAccount(t testing.TB, d *db.DB, id event.ID) {
	t.Helper()
	dbtest.Must(t, d, event.System, account.Erase{Account: id, Claim: load[account.State](t, d, account.Stream(id)).Claim})
}

// within asks again for a second, which is how long other processes may take to notice an erasure.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Second); ; time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("after a second: %s", what)
			return
		}
	}
}

// sealedOf opens all sealed fields of the log as one process reads them, and sorts them by what they show.
func sealedOf(t *testing.T, d *db.DB) (open []string, erased int) {
	t.Helper()
	for _, r := range positioned(t, d, 0) {
		if !bytes.Equal(event.Leaf(&r), r.LeafHash) {
			t.Errorf("event %s at position %d: the leaf hash does not stand for its columns", r.Kind, r.Position)
		}
		e, err := d.Decode(t.Context(), &r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = event.MapSealed(e, func(_ string, _ bool, s event.Sealed) (event.Sealed, error) {
			if s.Erased() {
				erased++
			} else {
				open = append(open, s.Text())
			}
			return s, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return open, erased
}

func TestErasureReadsAsErasedInEveryProcess(t *testing.T) {
	base := dbtest.New(t)
	one, two := base.Open(t, dbtest.Server), base.Open(t, dbtest.Worker)
	team, other := dbtest.NewTeam(t, one, "demo"), dbtest.NewTeam(t, one, "demo")
	id := team.Converse(t, one)
	posted := team.Post(t, one, id, strings.Repeat("long ", 10000)) // in the blob store
	streams := func(d *db.DB) (conversation.State, run.State, agent.State) {
		return load[conversation.State](t, d, conversation.Stream(id, team.Space)),
			load[run.State](t, d, run.Stream(posted.Run, team.Space, id)), load[agent.State](t, d, agent.Stream(team.Agent, team.Space))
	}
	c, r, a := streams(two) // the other process has it all in its cache
	if !c.Title.Readable() || len(r.Prompt.Text()) != 50000 || !a.Instructions.Readable() {
		t.Fatalf("before the erasure: %+v, %+v, %+v", c.Title, r.Prompt, a.Instructions)
	}
	opened, erased := sealedOf(t, two)
	if erased != 0 {
		t.Fatalf("%d fields are erased before the erasure", erased)
	}
	eraseSpace(t, one, team)
	if c, r, a := streams(one); !c.Title.Erased() || !r.Prompt.Erased() || !a.Instructions.Erased() {
		t.Errorf("in the process that erased: %+v, %+v, %+v", c.Title, r.Prompt, a.Instructions)
	}
	within(t, "the other process still shows states with text", func() bool {
		c, r, a := streams(two)
		return c.Title.Erased() && r.Prompt.Erased() && a.Instructions.Erased()
	})
	if !load[agent.State](t, two, agent.Stream(other.Agent, other.Space)).Name.Readable() {
		t.Error("another space was erased as well")
	}
	if owner := load[account.State](t, two, account.Stream(team.Account)); !owner.Email.Readable() {
		t.Error("the owner's account was erased with the space")
	}
	eraseAccount(t, one, team.Account)
	within(t, "the other process still opens the account's fields", func() bool {
		open, erased := sealedOf(t, two)
		return erased == 10 && len(open) == len(opened)-10 // space 2, agent 2, conversation 1, message and run 3, account 2
	})
	requireNulls(t, base, team, id)
}

// requireNulls checks the projections; that no table was forgotten shows in the replay which ends each test.
func requireNulls(t *testing.T, base *dbtest.Database, team dbtest.Team, id event.ID) {
	t.Helper()
	var text *string
	err := base.Conn(t, "").QueryRow(t.Context(), `
		SELECT coalesce(a.email, a.name, s.name, s.slug, g.name, r.name, r.instructions, c.title, m.text)
		FROM view.account a, view.space s, view.agent g, view.agent_revision r, view.conversation c, view.message m
		WHERE a.id = $1 AND s.id = $2 AND g.space_id = $2 AND r.space_id = $2 AND c.id = $3 AND m.space_id = $2`, team.Account, team.Space, id).Scan(&text)
	if err != nil || text != nil {
		t.Errorf("projections keep %v: %v", text, err)
	}
}

// TestStaleKeyCannotSealAfterAnErasure holds back an append that was sealed before: the gate refuses it.
func TestStaleKeyCannotSealAfterAnErasure(t *testing.T) {
	base := dbtest.New(t)
	one, two := base.Open(t, dbtest.Server), base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, one, "demo")
	id := team.Converse(t, two)
	stream := conversation.Stream(id, team.Space)
	posted := func() conversation.MessagePosted {
		return conversation.MessagePosted{Message: dbtest.NewID(), Turn: dbtest.NewID(), Run: dbtest.NewID(), Author: "system", Text: event.Seal("too late")}
	}
	if _, err := two.Append(t.Context(), dbtest.Meta(event.System), db.Expected{Change: event.Change{Stream: stream, Events: []event.Event{posted()}}, Version: 1}); err != nil {
		t.Fatal(err)
	}
	eraseSpace(t, one, team)
	// Append neither loads nor decides: only the key in the cache of two stands between the text and the log.
	_, err := two.Append(t.Context(), dbtest.Meta(event.System), db.Expected{Change: event.Change{Stream: stream, Events: []event.Event{posted()}}, Version: 2})
	if !fault.HasCode(err, "subject_erased") || !strings.Contains(err.Error(), "the key of subject") {
		t.Fatalf("an append under a stale key: %v", err)
	}
}

// TestErasureRacesWithWriters has 8 writers in two processes that append into the space while it is erased.
func TestErasureRacesWithWriters(t *testing.T) {
	base := dbtest.New(t)
	processes := []*db.DB{base.Open(t, dbtest.Server), base.Open(t, dbtest.Server)}
	team := dbtest.NewTeam(t, processes[0], "demo")
	var written, refused atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 8 {
		d := processes[i%2]
		id := team.Converse(t, d)
		wg.Go(func() {
			<-start
			for {
				_, err := d.Execute(context.Background(), team.Message(id, "text"), dbtest.Meta(team.Actor()))
				if err == nil {
					written.Add(1)
					continue
				}
				refused.Add(1)
				if kind := fault.KindOf(err); kind != fault.Conflict && kind != fault.NotFound && kind != fault.Denied {
					t.Errorf("a writer during the erasure: %v", err)
				}
				return
			}
		})
	}
	close(start)
	for written.Load() < 50 {
		time.Sleep(time.Millisecond)
	}
	eraseSpace(t, processes[0], team)
	wg.Wait()
	if refused.Load() != 8 {
		t.Errorf("%d of 8 writers were refused", refused.Load())
	}
	for i, d := range processes {
		within(t, "fields of the space are open", func() bool {
			open, _ := sealedOf(t, d)
			return len(open) == 2 // e-mail and name of the owner
		})
		_ = i
	}
	records := positioned(t, processes[0], 0)
	requireNothingAfterErasure(t, records, team.Space)
}

// requireNothingAfterErasure checks that no sealed field of the space has a position after the erasure's.
func requireNothingAfterErasure(t *testing.T, records []event.Record, space event.ID) {
	t.Helper()
	erased := false
	for _, r := range records {
		if r.Kind == "space.erased" && r.StreamID == space {
			erased = true
		} else if erased && r.SpaceID == space && bytes.Contains(r.Data, []byte(`"key":"`)) {
			t.Errorf("%s at position %d was sealed after the erasure", r.Kind, r.Position)
		}
	}
	if !erased {
		t.Error(errors.New("the erasure has no position"))
	}
}
