package live_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
	"cairn/server/live"
)

func activity(space event.ID) live.Topic { return live.Topic{ID: space, Activity: true} }

// activityFacts are what docs/reference/live.md says of the activity of the world's space, from the log.
func (w *world) activityFacts() []int64 {
	w.t.Helper()
	standing := []string{"run.queued", "run.started", "run.succeeded", "run.failed", "run.cancelled", "run.worker_lost", "run.released"}
	return w.read(db.Scope{Space: w.team.Space}, func(r *event.Record) bool {
		return !strings.HasPrefix(r.Kind, "run.") || slices.Contains(standing, r.Kind)
	})
}

// work lets a worker do a message's run in a conversation of its own: seven events, of which one is no activity.
func (w *world) work(text string) {
	w.t.Helper()
	conversationID := w.team.Converse(w.t, w.db)
	target := run.Target{Run: w.team.Post(w.t, w.db, conversationID, text).Run, Space: w.team.Space, Conversation: conversationID}
	dbtest.Must(w.t, w.db, event.WorkerActor("w"), run.Start{Target: target, Epoch: 1, Worker: "w", Host: "h"})
	dbtest.Must(w.t, w.db, event.WorkerActor("w"), run.RecordAnswer{Target: target, Epoch: 1, Step: 1, Model: "demo", Text: text, Finish: "stop"})
	dbtest.Must(w.t, w.db, event.WorkerActor("w"), conversation.EndTurn{
		Conversation: conversationID, Space: w.team.Space, Run: target.Run,
		End: run.Ending{Outcome: run.StatusSucceeded, Answer: text, Epoch: 1},
	})
}

func TestActivityIsReplayedThenFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.replica(), w.replica()
	for range 30 {
		w.work("before")
	}
	w.settled()
	foreign := dbtest.NewTeam(t, w.db, "demo")
	c, both := dial(t, one, "owner"), dial(t, two, "owner")
	c.subscribe(activity(w.team.Space), 0)
	frames := c.until("live")
	if got, want := positions(frames), w.activityFacts(); !slices.Equal(got, want) {
		t.Fatalf("replayed %v, want %v", got, want)
	}
	both.subscribe(activity(w.team.Space), frames[len(frames)-1].Position)
	both.until("live")
	both.subscribe(w.team.Space, 0)
	both.until("live")
	foreign.Post(t, w.db, foreign.Converse(t, w.db), "of another space")
	w.work("after")
	w.join("guest", space.Member)
	w.settled()
	want := w.activityFacts()
	for got := positions(frames); len(got) < len(want); got = positions(frames) {
		frames = append(frames, c.until("event")...)
	}
	if got := positions(frames); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for _, f := range frames {
		if f.Topic != activity(w.team.Space) {
			t.Fatalf("frame %+v is of another topic", f)
		}
	}
	// An event of two topics of one socket comes once for each, with the same content.
	data := map[live.Topic]string{}
	for len(data) < 2 {
		f := both.until("event")
		if last := f[len(f)-1]; last.Kind == "space.member_added" {
			data[last.Topic] = string(last.Data)
		}
	}
	if data[activity(w.team.Space)] != data[live.Topic{ID: w.team.Space}] {
		t.Errorf("the frames of one event differ: %v", data)
	}
}

// Two clients watch the activity of one space on two replicas, while their sockets are cut at random points and a
// replica is closed and started.
func TestActivityHasNoGapAndNoRepeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := &fleet{w: w}
	f.of[0], f.of[1] = w.replica(restless), w.replica(restless)
	var target atomic.Int64
	var watchers [2]watcher
	var errs [2]error
	var following sync.WaitGroup
	for i := range watchers {
		following.Go(func() {
			errs[i] = watchers[i].follow(t, f, i, activity(w.team.Space), 40, rand.New(rand.NewPCG(11, uint64(i))), &target)
		})
	}
	var trouble sync.WaitGroup
	trouble.Go(func() { f.restart(0) })
	for range 60 {
		w.work("cut")
	}
	trouble.Wait()
	w.settled()
	want := w.activityFacts()
	target.Store(want[len(want)-1])
	w.work("the end") // wakes those who wait in a socket that will not be cut
	following.Wait()
	for i := range watchers {
		if errs[i] != nil {
			t.Errorf("client %d: %v", i, errs[i])
		}
		if seen := watchers[i].seen; !slices.Equal(seen[:min(len(seen), len(want))], want) {
			t.Errorf("client %d saw %d positions, the log has %d: first difference %s", i, len(seen), len(want), difference(seen, want))
		}
	}
	t.Logf("%d events, %d cuts", len(want), watchers[0].cuts+watchers[1].cuts)
}

func TestActivityIsForMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica()
	other := dbtest.NewTeam(t, w.db, "demo")
	w.doors.open("stranger", other.Account, time.Time{})
	stranger := dial(t, r, "stranger")
	// Nor is there an activity of anything but a space.
	for _, topic := range []live.Topic{activity(w.team.Space), activity(dbtest.NewID()), activity(other.Account), activity(w.conversation), activity(other.Agent)} {
		stranger.subscribe(topic, 0)
		f := stranger.until("ended")
		if last := f[len(f)-1]; last.Code != "not_found" || last.Topic != topic || len(positions(f)) > 0 {
			t.Errorf("%s: %+v", topic, f)
		}
	}
	stranger.subscribe(activity(other.Space), 0)
	stranger.until("live")
	guest := w.join("guest", space.Auditor)
	removed := dial(t, r, "guest")
	removed.subscribe(activity(w.team.Space), 0)
	removed.until("live")
	dbtest.Must(t, w.db, w.team.Actor(), space.RemoveMember{Space: w.team.Space, Account: guest})
	begin := time.Now()
	cut := w.settled()
	w.team.Post(t, w.db, w.conversation, "not for the guest")
	f := removed.until("ended")
	if last := f[len(f)-1]; last.Code != "access_ended" || time.Since(begin) > time.Second {
		t.Errorf("%+v after %v", last, time.Since(begin))
	}
	for _, p := range positions(f) {
		if p >= cut {
			t.Errorf("position %d was shown to a member who was removed at %d", p, cut)
		}
	}
}

func TestActivityOfAnErasedSpaceEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := dial(t, w.replica(), "owner")
	c.subscribe(activity(w.team.Space), 0)
	c.until("live")
	state, _, err := w.db.Load(t.Context(), space.Stream(w.team.Space))
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Must(t, w.db, w.team.Actor(), space.Erase{Space: w.team.Space, Claim: state.(space.State).Claim})
	begin := time.Now()
	f := c.until("ended")
	if last := f[len(f)-1]; last.Code != "access_ended" || time.Since(begin) > time.Second {
		t.Errorf("%+v after %v", last, time.Since(begin))
	}
}

func TestSlowClientOfAnActivityIsToldToResync(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica(func(c *live.Config) { c.QueueBytes = 128 << 10; c.Patience = time.Minute })
	slow := dialNarrow(t, r)
	slow.subscribe(activity(w.team.Space), 0)
	slow.until("live")
	text := strings.Repeat("slow ", 1500)
	for n := 0; r.hub.Stats().Overflow == 0; n++ {
		if w.team.Post(t, w.db, w.conversation, text); n > 600 {
			t.Fatalf("%d messages went into a socket that nobody reads: %+v", n, r.hub.Stats())
		}
	}
	w.settled()
	frames := slow.until("resync")
	got := positions(frames)
	if last := frames[len(frames)-1]; last.Topic != activity(w.team.Space) || last.Position != got[len(got)-1] {
		t.Errorf("resync %+v, the client has %d", last, got[len(got)-1])
	}
	slow.subscribe(activity(w.team.Space), got[len(got)-1])
	got = append(got, positions(slow.until("live"))...)
	if want := w.activityFacts(); !slices.Equal(want[len(want)-len(got):], got) {
		t.Errorf("the slow client got %d positions of %d: %s", len(got), len(want), difference(got, want[len(want)-len(got):]))
	}
}
