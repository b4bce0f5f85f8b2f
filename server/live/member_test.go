package live_test

import (
	"slices"
	"testing"
	"time"

	"cairn/db/dbtest"
	"cairn/domain/account"
	"cairn/domain/event"
	"cairn/domain/space"
	"cairn/server/live"
)

// join makes an account a member of the world's space, with a token of its own.
func (w *world) join(token string, role space.Role) event.ID {
	w.t.Helper()
	other := dbtest.NewTeam(w.t, w.db, "demo")
	dbtest.Must(w.t, w.db, w.team.Actor(), space.AddMember{Space: w.team.Space, Account: other.Account, Role: role})
	w.doors.open(token, other.Account, time.Time{})
	return other.Account
}

// A member who is removed gets nothing that happened after it, within a second, on any replica; the others go
// on.
func TestRemovedMemberIsCutOff(t *testing.T) {
	w := newWorld(t)
	one, two := w.replica(), w.replica()
	guest := w.join("guest", space.Auditor)
	removed, owner := dial(t, one, "guest"), dial(t, two, "owner")
	for _, c := range []*client{removed, owner} {
		c.subscribe(w.conversation, 0)
		c.until("live")
		c.subscribe(w.team.Space, 0)
		c.until("live")
	}
	dbtest.Must(t, w.db, w.team.Actor(), space.RemoveMember{Space: w.team.Space, Account: guest})
	begin := time.Now()
	cut := w.settled()
	w.team.Post(t, w.db, w.conversation, "not for the guest")
	for range 2 {
		frames := removed.until("ended")
		if f := frames[len(frames)-1]; f.Code != "access_ended" {
			t.Errorf("%+v", f)
		}
		for _, p := range positions(frames) {
			if p >= cut {
				t.Errorf("position %d was shown to a member who was removed at %d", p, cut)
			}
		}
	}
	took := time.Since(begin)
	t.Logf("cut off after %v", took)
	if took > time.Second {
		t.Errorf("cut off after %v", took)
	}
	removed.subscribe(w.conversation, 0)
	if f := removed.until("ended"); f[len(f)-1].Code != "not_found" {
		t.Errorf("%+v", f)
	}
	w.settled()
	want := w.facts(w.conversation)
	for f := owner.until("event"); f[len(f)-1].Position < want[len(want)-1]; f = owner.until("event") {
		t.Logf("the owner is at %d", f[len(f)-1].Position)
	}
}

// A role that changes ends nothing that the new role may watch, and loses nothing.
func TestChangedRoleGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica()
	guest := w.join("guest", space.Auditor)
	c := dial(t, r, "guest")
	c.subscribe(w.conversation, 0)
	frames := c.until("live")
	for i := range 10 {
		w.team.Post(t, w.db, w.conversation, "x")
		role := []space.Role{space.Member, space.Auditor}[i%2]
		dbtest.Must(t, w.db, w.team.Actor(), space.ChangeRole{Space: w.team.Space, Account: guest, Role: role})
	}
	w.settled()
	want := w.facts(w.conversation)
	for begin := time.Now(); len(positions(frames)) < len(want); {
		f, err := c.next()
		if err != nil || time.Since(begin) > 20*time.Second {
			t.Fatalf("%v: %d of %d", err, len(positions(frames)), len(want))
		}
		if frames = append(frames, f); f.Type == "ended" {
			t.Fatalf("%+v", f)
		}
	}
	if got := positions(frames); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestErasedSpaceEndsItsTopics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica()
	c := dial(t, r, "owner")
	c.subscribe(w.conversation, 0)
	c.until("live")
	created, err := w.db.Stream(t.Context(), w.team.Space, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := w.db.Decode(t.Context(), &created[0])
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Must(t, w.db, w.team.Actor(), space.Erase{Space: w.team.Space, Claim: decoded.(space.Created).Claim})
	if frames := c.until("ended"); frames[len(frames)-1].Code != "access_ended" {
		t.Errorf("%+v", frames)
	}
}

// A credential that is revoked or runs out closes the socket; one whose account is erased at once.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica(func(c *live.Config) { c.Recheck = 200 * time.Millisecond; c.Silence = 500 * time.Millisecond })
	w.doors.open("short", w.team.Account, time.Now().Add(time.Second))
	w.doors.open("revoked", w.team.Account, time.Time{})
	short, revoked, stays := dial(t, r, "short"), dial(t, r, "revoked"), dial(t, r, "owner")
	w.doors.shut("revoked")
	for name, c := range map[string]*client{"short": short, "revoked": revoked} {
		if code, reason := c.closed(); code != live.CodeSessionEnded {
			t.Errorf("%s: closed with %d %s", name, code, reason)
		}
	}
	stays.subscribe(w.conversation, 0)
	stays.until("live")
}

func TestErasedAccountIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica(func(c *live.Config) { c.Recheck = time.Hour })
	guest := w.join("guest", space.Member)
	c := dial(t, r, "guest")
	c.subscribe(w.conversation, 0)
	c.until("live")
	w.doors.shut("guest")
	opened, err := w.db.Stream(t.Context(), guest, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := w.db.Decode(t.Context(), &opened[0])
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Must(t, w.db, event.System, account.Erase{Account: guest, Claim: decoded.(account.Opened).Claim})
	begin := time.Now()
	if code, reason := c.closed(); code != live.CodeSessionEnded || time.Since(begin) > time.Second {
		t.Errorf("closed with %d %s after %v", code, reason, time.Since(begin))
	}
}
