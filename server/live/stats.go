package live

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// Stats is what a hub counts, for metrics. Counters only grow while the process lives.
type Stats struct {
	Sockets int64 // open and authenticated, now
	Opening int64 // not authenticated yet, now
	Topics  int64 // watched by at least one socket, now

	Opened  int64                          // sockets that were authenticated
	Refused int64                          // sockets that were not
	Closed  map[websocket.StatusCode]int64 // by the code that was given; 1000: the peer went

	Messages int64 // WebSocket messages written
	Bytes    int64 // in them
	Events   int64 // event frames handed out by the tail and written
	Replayed int64 // event frames read from the log by a socket and written
	Encoded  int64 // events serialised
	Overflow int64 // queues that were full and dropped
	Resyncs  int64 // topics whose client was told so
	Ended    int64 // topics ended or refused because they may not be watched

	Deltas        int64 // batches of words written to queues
	DeltasDropped int64 // that were not, because a queue was half full

	QueuedMost int64         // bytes that ever waited for one socket
	Position   int64         // up to which the tail has handed out
	Lag        time.Duration // age of the newest event of the last batch when it was handed out, by two clocks
}

type counters struct {
	opened, refused, messages, bytes, events, replayed, encoded, overflows, resyncs, ended, deltas, deltasDropped, most, lag atomic.Int64

	mu     sync.Mutex
	closes map[websocket.StatusCode]int64
}

func (c *counters) closed(code websocket.StatusCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closes == nil {
		c.closes = map[websocket.StatusCode]int64{}
	}
	c.closes[code]++
}

func (c *counters) queuedMost(bytes int64) {
	for {
		most := c.most.Load()
		if bytes <= most || c.most.CompareAndSwap(most, bytes) {
			return
		}
	}
}

// Stats answers the counters as they are now.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	sockets, opening, topics, position := len(h.conns), h.opening, len(h.topics), h.position
	h.mu.Unlock()
	c := &h.stats
	c.mu.Lock()
	closes := make(map[websocket.StatusCode]int64, len(c.closes))
	for code, n := range c.closes {
		closes[code] = n
	}
	c.mu.Unlock()
	return Stats{
		Sockets: int64(sockets), Opening: int64(opening), Topics: int64(topics),
		Opened: c.opened.Load(), Refused: c.refused.Load(), Closed: closes,
		Messages: c.messages.Load(), Bytes: c.bytes.Load(), Events: c.events.Load(), Replayed: c.replayed.Load(),
		Encoded: c.encoded.Load(), Overflow: c.overflows.Load(), Resyncs: c.resyncs.Load(), Ended: c.ended.Load(),
		Deltas: c.deltas.Load(), DeltasDropped: c.deltasDropped.Load(),
		QueuedMost: c.most.Load(), Position: position, Lag: time.Duration(c.lag.Load()),
	}
}
