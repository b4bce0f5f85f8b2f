package live_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/server/live"
)

// fleet is two replicas, of which the test may close and start one at any moment.
type fleet struct {
	w  *world
	mu sync.Mutex
	of [2]*replica
}

func (f *fleet) at(i int) *replica {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[i%2]
}

func (f *fleet) restart(i int) {
	f.at(i).close()
	time.Sleep(100 * time.Millisecond)
	fresh := f.w.replica(restless)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[i%2] = fresh
}

// restless replicas ping often: the positions of pings are resumed from too.
func restless(c *live.Config) { c.Silence = 15 * time.Millisecond }

// watcher follows a topic through one socket after another, as a browser does: it keeps the last position.
type watcher struct {
	last int64
	seen []int64
	cuts int
}

// follow reads until it has the last position. It cuts its own socket at random points, cuts times.
func (w *watcher) follow(t *testing.T, f *fleet, prefer int, topic any, cuts int, rng *rand.Rand, target *atomic.Int64) error {
	for done := false; !done; {
		c, err := tryDial(t, f.at(prefer), "owner")
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if err := c.subscribe(topic, w.last); err == nil {
			done, err = w.read(c, cuts, rng, target)
			if err != nil {
				c.ws.CloseNow()
				return err
			}
		}
		c.ws.CloseNow()
		if rng.IntN(3) == 0 {
			prefer++ // a load balancer sends it anywhere
		}
	}
	return nil
}

// read takes frames until a cut or the end, and sees that every position is greater than the one before.
func (w *watcher) read(c *client, cuts int, rng *rand.Rand, target *atomic.Int64) (done bool, err error) {
	life := 1 << 30
	if w.cuts < cuts {
		life = rng.IntN(12)
		w.cuts++
		timer := time.AfterFunc(time.Duration(rng.IntN(80))*time.Millisecond, func() { c.ws.CloseNow() })
		defer timer.Stop()
	}
	isLive := false
	for ; ; life-- {
		if end := target.Load(); end > 0 && w.last >= end && w.cuts >= cuts {
			return true, nil
		}
		if life == 0 {
			return false, nil
		}
		frame, err := c.next()
		switch {
		case err != nil:
			return false, nil
		case frame.Type == "event" && frame.Position <= w.last:
			return false, fmt.Errorf("position %d came after %d", frame.Position, w.last)
		case frame.Type == "event":
			w.last = frame.Position
			w.seen = append(w.seen, frame.Position)
		case frame.Type == "live", frame.Type == "ping" && isLive:
			isLive = true
			w.last = max(w.last, frame.Position)
		}
	}
}

// Two clients on two replicas watch one conversation of 500 events, while their sockets are cut 200 times at
// random points, LISTEN connections are ended, and a replica is closed and started.
func TestNoGapAndNoRepeat(t *testing.T) {
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
			errs[i] = watchers[i].follow(t, f, i, w.conversation, 100, rand.New(rand.NewPCG(7, uint64(i))), &target)
		})
	}
	stopped := make(chan struct{})
	var trouble sync.WaitGroup
	trouble.Go(func() { w.endConnections(stopped, listeners) })
	trouble.Go(func() {
		for i := range 2 {
			time.Sleep(1500 * time.Millisecond)
			f.restart(i)
		}
	})
	for i := range 250 {
		w.team.Post(t, w.db, w.conversation, fmt.Sprintf("message %d", i))
		time.Sleep(time.Duration(i%30) * time.Millisecond)
	}
	w.settled()
	want := w.facts(w.conversation)
	target.Store(want[len(want)-1])
	// The last events are there already: one more wakes those who wait in a socket that will not be cut.
	w.team.Post(t, w.db, w.conversation, "the end")
	following.Wait()
	close(stopped)
	trouble.Wait()
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

func difference(got, want []int64) string {
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			return fmt.Sprintf("at %d: got %v, want %d", i, got[min(i, len(got)):min(i+2, len(got))], want[i])
		}
	}
	return "none"
}

// Which connections of a database are ended.
const (
	listeners  = `(query ILIKE 'LISTEN%' OR query ILIKE 'NOTIFY%')`
	ofReplicas = `application_name = 'live replica'`
)

// endConnections ends connections of the database now and then.
func (w *world) endConnections(stopped <-chan struct{}, which string) {
	conn := w.base.Conn(w.t, "")
	for {
		select {
		case <-stopped:
			return
		case <-time.After(400 * time.Millisecond):
		}
		_, err := conn.Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND `+which)
		if err != nil {
			w.t.Errorf("end connections: %v", err)
			return
		}
	}
}

// A replica whose connections to the database are all ended, again and again, keeps its sockets: it reads
// again.
func TestEndedConnectionsEndNoSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica()
	stopped := make(chan struct{})
	var trouble sync.WaitGroup
	trouble.Go(func() { w.endConnections(stopped, ofReplicas) })
	c := dial(t, r, "owner")
	var got []int64
	for begin := time.Now(); time.Since(begin) < 3*time.Second; time.Sleep(5 * time.Millisecond) {
		if err := c.subscribe(w.conversation, 0); err != nil {
			t.Fatal(err)
		}
		w.team.Post(t, w.db, w.conversation, "x")
		c.until("subscribed")
		got = positions(c.until("live"))
	}
	close(stopped)
	trouble.Wait()
	w.settled()
	want := w.facts(w.conversation)
	for len(got) < len(want) {
		got = append(got, positions(c.until("event"))...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", difference(got, want))
	}
}

// Whoever comes back is sent what it missed, and little more.
func TestReconnectCostsWhatWasMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica()
	for range 200 {
		w.team.Post(t, w.db, w.conversation, "a message of about the length that people write, more or less")
	}
	w.settled()
	all := w.facts(w.conversation)
	cost := func(missed int) int {
		c := dial(t, r, "owner")
		if err := c.subscribe(w.conversation, all[len(all)-1-missed]); err != nil {
			t.Fatal(err)
		}
		if n := len(positions(c.until("live"))); n != missed {
			t.Errorf("missed %d, got %d", missed, n)
		}
		return c.bytes
	}
	none, few, many := cost(0), cost(20), cost(200)
	t.Logf("bytes after a reconnect: nothing missed %d, 20 events %d, 200 events %d", none, few, many)
	if each := float64(few-none) / 20; none > 1000 || float64(many-none) > 1.3*200*each {
		t.Errorf("%d bytes for nothing, %.0f for each of 20, %.0f for each of 200", none, each, float64(many-none)/200)
	}
}

// Subscribing while events pour in is where the log and the tail meet: many joins, none with a seam.
func TestJoinsWhileEventsPourIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica(func(c *live.Config) { c.Tick = time.Millisecond })
	stopped := make(chan struct{})
	var writing sync.WaitGroup
	var written atomic.Int64
	writing.Go(func() {
		for written.Add(1) < 900 {
			select {
			case <-stopped:
				return
			case <-time.After(time.Millisecond):
				w.team.Post(t, w.db, w.conversation, "pouring")
			}
		}
	})
	c := dial(t, r, "owner")
	type joined struct {
		after int64
		got   []int64
	}
	var joins []joined
	for after := int64(0); len(joins) < 100 && written.Load() < 850; {
		if err := c.subscribe(w.conversation, after); err != nil {
			t.Fatal(err)
		}
		c.until("subscribed")
		frames := c.until("live")
		for range 3 {
			frames = append(frames, c.until("event")...)
		}
		got := positions(frames)
		joins = append(joins, joined{after, got})
		after = got[max(0, len(got)-20)]
	}
	close(stopped)
	writing.Wait()
	w.settled()
	want := w.facts(w.conversation)
	for i, join := range joins {
		begin, _ := slices.BinarySearch(want, join.after+1)
		if !slices.Equal(join.got, want[begin:begin+len(join.got)]) {
			t.Fatalf("join %d: %s", i, difference(join.got, want[begin:begin+len(join.got)]))
		}
	}
	t.Logf("%d joins", len(joins))
}

// A log that was restored is another life of it: positions mean something else, and every client starts over.
func TestRestoredLogStartsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica()
	c := dial(t, r, "owner")
	c.subscribe(w.conversation, 0)
	c.until("live")
	conn := w.base.Conn(t, "")
	if _, err := conn.Exec(t.Context(), "UPDATE log.log_identity SET incarnation = incarnation + 1"); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	var ending sync.WaitGroup
	ending.Go(func() { w.endConnections(stopped, listeners) })
	code, reason := c.closed()
	close(stopped)
	ending.Wait()
	if code != live.CodeStartOver {
		t.Errorf("closed with %d %s", code, reason)
	}
	again := dial(t, r, "owner")
	if again.hello.Incarnation != c.hello.Incarnation+1 {
		t.Errorf("hello %+v after %+v", again.hello, c.hello)
	}
	again.subscribe(w.conversation, 0)
	if got, want := positions(again.until("live")), w.facts(w.conversation); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
