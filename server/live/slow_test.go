package live_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cairn/server/live"
)

// A client that does not read gets a bounded queue and is told to subscribe again; the others get everything
// meanwhile, and in the end so does it.
func TestSlowClientIsToldToResync(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const bound = 128 << 10
	r := w.replica(func(c *live.Config) { c.QueueBytes = bound; c.Patience = time.Minute })
	fast, slow := dial(t, r, "owner"), dialNarrow(t, r)
	for _, c := range []*client{fast, slow} {
		c.subscribe(w.conversation, 0)
		c.until("live")
	}
	text := strings.Repeat("slow ", 1500)
	var fastGot []int64
	for n := 0; r.hub.Stats().Overflow == 0; n++ {
		w.team.Post(t, w.db, w.conversation, text)
		// A message is two events, and the first one begins a turn too. The fast client takes them all before the
		// next one is posted: else it would fall behind by one event a message, and be the slow one itself.
		for len(fastGot) < 2*(n+1)+1 {
			fastGot = append(fastGot, positions(fast.until("event"))...)
		}
		if n > 400 {
			t.Fatalf("%d messages went into a socket that nobody reads: %+v", n, r.hub.Stats())
		}
	}
	w.settled()
	want := w.facts(w.conversation)
	for len(fastGot) == 0 || fastGot[len(fastGot)-1] != want[len(want)-1] {
		fastGot = append(fastGot, positions(fast.until("event"))...)
	}
	if most := r.hub.Stats().QueuedMost; most > bound {
		t.Errorf("%d bytes waited, the bound is %d", most, bound)
	}
	frames := slow.until("resync")
	got := positions(frames)
	if after := frames[len(frames)-1].Position; after != got[len(got)-1] {
		t.Errorf("resync after %d, the client has %d", after, got[len(got)-1])
	}
	slow.subscribe(w.conversation, got[len(got)-1])
	got = append(got, positions(slow.until("live"))...)
	if all := slices.Compact(slices.Clone(got)); !slices.Equal(got, all) || !slices.Equal(want[len(want)-len(got):], got) {
		t.Errorf("the slow client got %d positions of %d: %s", len(got), len(want), difference(got, want[len(want)-len(got):]))
	}
	t.Logf("%+v", r.hub.Stats())
}

// A socket that takes nothing at all is closed in the end.
func TestStuckSocketIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica(func(c *live.Config) { c.Patience = 500 * time.Millisecond; c.Silence = time.Hour })
	stuck := dialNarrow(t, r)
	stuck.subscribe(w.conversation, 0)
	stuck.until("live")
	text := strings.Repeat("stuck ", 5000)
	for n := 0; r.hub.Stats().Closed[live.CodeSilent] == 0; n++ {
		w.team.Post(t, w.db, w.conversation, text)
		if n > 400 {
			t.Fatalf("the socket is still open: %+v", r.hub.Stats())
		}
	}
}

// dialNarrow connects with small buffers on both sides, so that the server sees soon that nobody reads.
func dialNarrow(t *testing.T, r *replica) *client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return conn, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	ws, _, err := websocket.Dial(t.Context(), r.url(), &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}, HTTPHeader: http.Header{"Cookie": {"session=owner"}}})
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(4 << 20)
	t.Cleanup(func() { ws.CloseNow() })
	c := &client{t: t, ws: ws}
	c.hello, err = c.next()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
