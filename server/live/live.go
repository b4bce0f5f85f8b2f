// Package live carries the log to viewers over WebSockets: replay after a position, then what is new, in
// order and without gap or repeat, on any number of server replicas. The protocol is docs/reference/live.md.
//
// One tail of the log for each replica (fanout.go) hands every event, serialised once, to the sockets that
// watch its topic. A socket that is behind reads the log itself and joins the tail without a seam. The life of
// a subscription:
//
//	            +------ read a page of the log <---+
//	            v                                  | more, or the tail passed meanwhile
//	subscribe --> replaying --nothing missing--> live --queue full--> stopped (resync; subscribe again)
//	                 ^   |                        |
//	                 |   +--may not watch--> ended|
//	                 +---- membership changed ----+
//
// A socket has two goroutines: one reads (conn.go), one writes and owns the subscriptions (writer.go). Nobody
// waits for a socket: the tail only ever appends to its bounded queue.
//
// Locks are taken in the order Hub.mu, conn.mu.
//
// It may import db, domain, the WebSocket library and the standard library.
package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"cairn/db"
	"cairn/domain/event"
)

// Config says what a hub is made of. Zero limits mean the values in their comments.
type Config struct {
	DB           *db.DB
	Authenticate Authenticator
	Authorize    Authorizer // nil: Members on DB
	Origins      []string   // hosts besides the server's own whose pages may connect, as patterns of path.Match
	Log          *slog.Logger

	MaxSockets int           // of this replica; 10,000
	MaxTopics  int           // of one socket; 64
	QueueBytes int           // that may wait for one socket; 256 KiB
	Tick       time.Duration // at least this between two batches; 16 ms
	Silence    time.Duration // after which either side is asked whether it lives; 5 s
	Patience   time.Duration // for an authentication, a pong, or a write to finish; 10 s
	Recheck    time.Duration // how often a socket's credential is looked at again; 15 s

	// Denied, when not nil, is told of a topic that an account asked for and may not watch, or that does not exist.
	Denied func(account event.ID, topic Topic)

	// Lag, when not nil, is told how old the newest event of each batch was when it was handed out.
	Lag func(time.Duration)
}

func (c Config) complete() (Config, error) {
	if c.DB == nil || c.Authenticate == nil {
		return c, errors.New("live: DB and Authenticate are required")
	}
	if c.Authorize == nil {
		c.Authorize = Members{Read: c.DB.Read()}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	standard(&c.MaxSockets, 10_000)
	standard(&c.MaxTopics, 64)
	standard(&c.QueueBytes, 256<<10)
	standard(&c.Tick, 16*time.Millisecond)
	standard(&c.Silence, 5*time.Second)
	standard(&c.Patience, 10*time.Second)
	standard(&c.Recheck, 15*time.Second)
	return c, nil
}

func standard[T int | time.Duration](limit *T, value T) {
	if *limit == 0 {
		*limit = value
	}
}

// Hub serves all sockets of one replica.
type Hub struct {
	Config
	identity db.Identity // its head is that of the start; changed only by begin
	frames   *frames
	reading  chan struct{} // bounds how many sockets read the log at once: writers share the pool
	stats    counters

	mu       sync.Mutex
	position int64 // up to which the tail has handed out
	topics   map[Topic]*topic
	conns    map[*conn]struct{}
	words    map[event.ID]*words // by run: what is being said
	opening  int                 // sockets that are not authenticated yet
	draining bool                // no new sockets
	busy     sync.WaitGroup
}

// readers is how many sockets of a replica may read the log at the same time.
const readers = 6

// New makes a hub that stands at the log's head. Run must be called for it to move.
func New(ctx context.Context, config Config) (*Hub, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	h := &Hub{
		Config: config, frames: newFrames(config.DB), reading: make(chan struct{}, readers),
		topics: map[Topic]*topic{}, conns: map[*conn]struct{}{}, words: map[event.ID]*words{},
	}
	if err := h.begin(ctx); err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	return h, nil
}

// Run follows the log and looks after the sockets until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { h.follow(ctx) })
	parts.Go(func() { h.followDeltas(ctx) })
	parts.Go(func() { h.attend(ctx) })
	parts.Wait()
}

// Drain refuses new sockets and closes those that are open, each with its own hint when to come back. It
// returns when all are gone; those that are not when ctx ends are cut.
func (h *Hub) Drain(ctx context.Context) {
	h.mu.Lock()
	h.draining = true
	for c := range h.conns {
		c.end(draining())
	}
	h.mu.Unlock()
	gone := make(chan struct{})
	go func() { h.busy.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-ctx.Done():
		h.mu.Lock()
		for c := range h.conns {
			go c.ws.CloseNow()
		}
		h.mu.Unlock()
		<-gone
	}
}

// admit counts a socket in, and answers why not when there is no place for it.
func (h *Hub) admit() (refusal string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.draining:
		return "draining"
	case len(h.conns)+h.opening >= h.MaxSockets:
		return "too_many_sockets"
	}
	h.opening++
	h.busy.Add(1)
	return ""
}

// ServeHTTP serves one socket until it is closed. A refusal before the upgrade is a problem document.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		refuse(w, http.StatusBadRequest, "query_refused", "this address takes no query: send a token as the first message, never in the address")
		return
	}
	if reason := h.admit(); reason != "" {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, reason, "this replica takes no more sockets now: try again, another replica may answer")
		return
	}
	defer h.busy.Done()
	c, err := h.accept(w, r)
	if err != nil {
		h.mu.Lock()
		h.opening--
		h.mu.Unlock()
		return // the library or accept has answered
	}
	c.serve()
}
