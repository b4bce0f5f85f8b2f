package live

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"

	"cairn/domain/event"
)

type phase int

const (
	replaying phase = iota // reads the log
	live                   // gets what the tail hands out
	stopped                // the queue was full: the client must subscribe again
)

// sub is one subscription of one socket.
type sub struct {
	conn     *conn
	topic    Topic
	sent     int64 // up to which everything was written; of the writer alone
	failures int   // in a row; of the writer alone

	// Guarded by conn.mu.
	phase  phase
	cursor int64    // up to which everything was queued, while live
	space  event.ID // that owns the topic; zero before the first check and for topics of no space
	check  bool     // the permission must be checked before anything is written
}

// work is what the writer found to do.
type work struct {
	orders     []message
	queue      []item
	auth       bool
	overflowed bool
}

// write is the socket's writer: everything that is sent is sent here.
func (c *conn) write() {
	defer c.unsubscribeAll()
	if c.greet() != nil {
		return
	}
	for {
		select {
		case <-c.done:
			return
		case <-c.wake:
		}
		c.pace()
		for more := true; more; {
			select {
			case <-c.done:
				return
			default:
			}
			more = c.turn()
		}
	}
}

// pace keeps a tick between two messages, so that what comes meanwhile goes out with the next.
func (c *conn) pace() {
	if rest := c.hub.Tick - time.Since(time.Unix(0, c.wrote.Load())); rest > 0 {
		pause(c.ctx, rest)
	}
}

// turn does everything that there is to do, but reads only one page of the log. It answers whether it knows of
// more.
func (c *conn) turn() (more bool) {
	out := newMessage(c)
	defer out.release()
	ping := c.pingWanted()
	w := c.take()
	if w.auth && !c.reauthenticate() {
		return false
	}
	for _, order := range w.orders {
		c.obey(out, order)
	}
	c.sendQueue(out, w.queue)
	if w.overflowed {
		c.sendResync(out)
	}
	if ping != nil {
		out.add(ping)
	}
	more = c.replayOne(out)
	if out.flush() != nil {
		return false
	}
	return more
}

// pingWanted answers the ping that is due. Its position is read before the queue is taken: whatever the tail
// had handed out by then is written in front of it.
func (c *conn) pingWanted() []byte {
	c.mu.Lock()
	due := c.pingDue
	c.pingDue = false
	c.mu.Unlock()
	if !due {
		return nil
	}
	return encode(pingFrame{"ping", c.hub.at().Position})
}

func (c *conn) take() work {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := work{orders: c.orders, queue: c.queue, auth: c.authDue, overflowed: c.overflowed}
	c.orders, c.queue, c.queued, c.authDue, c.overflowed = nil, nil, 0, false, false
	if w.overflowed {
		for _, s := range c.subs {
			if s.phase == live {
				s.phase = stopped
			}
		}
	}
	return w
}

// sendQueue writes what the tail handed out, but nothing of subscriptions that are not live any more, and
// nothing that the socket has already read from the log.
func (c *conn) sendQueue(out *outgoing, queue []item) {
	for _, it := range queue {
		c.mu.Lock()
		wanted := it.sub.phase == live && c.subs[it.sub.topic] == it.sub
		c.mu.Unlock()
		if !wanted {
			continue
		}
		for _, f := range it.frames {
			if f.position == 0 {
				out.add(f.text)
				continue
			}
			if f.position > it.sub.sent {
				it.sub.sent = f.position
				out.add(f.text)
				c.hub.stats.events.Add(1)
			}
		}
	}
}

// sendResync tells the client which topics stopped, and after what.
func (c *conn) sendResync(out *outgoing) {
	for _, s := range c.subs {
		c.mu.Lock()
		over := s.phase == stopped
		c.mu.Unlock()
		if over {
			out.add(encode(topicFrame{"resync", s.topic, s.sent}))
			c.hub.stats.resyncs.Add(1)
			c.drop(s)
		}
	}
}

func (c *conn) greet() error {
	at := c.hub.at()
	out := newMessage(c)
	defer out.release()
	out.add(encode(helloFrame{"hello", Protocol, at.LogID, at.Incarnation, at.Position, c.hub.Silence.Milliseconds()}))
	return out.flush()
}

// reauthenticate looks at the credential again. One that cannot be checked now counts until it can.
func (c *conn) reauthenticate() bool {
	p, ok, err := c.hub.who(c.ctx, c.credential)
	switch {
	case c.ctx.Err() != nil:
		return false
	case err != nil:
		c.hub.Log.Warn("a socket's credential cannot be checked", "error", err)
		return true
	case !ok || p.Account != c.account:
		c.end(sessionEnded())
		return false
	}
	c.mu.Lock()
	c.expires = p.Expires
	c.mu.Unlock()
	return true
}

// outgoing collects frames into messages of at most about messageSize bytes.
type outgoing struct {
	conn *conn
	buf  *[]byte
	err  error
}

const messageSize = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

func newMessage(c *conn) *outgoing {
	buf := buffers.Get().(*[]byte)
	*buf = (*buf)[:0]
	return &outgoing{conn: c, buf: buf}
}

func (o *outgoing) release() {
	if cap(*o.buf) <= 2*messageSize {
		buffers.Put(o.buf)
	}
}

func (o *outgoing) add(text []byte) {
	if len(*o.buf) > 0 && len(*o.buf)+len(text) > messageSize {
		o.flush()
	}
	separator := byte(',')
	if len(*o.buf) == 0 {
		separator = '['
	}
	*o.buf = append(append(*o.buf, separator), text...)
}

// flush writes what was collected. A socket that does not take it in time is given up.
func (o *outgoing) flush() error {
	if o.err != nil || len(*o.buf) == 0 {
		return o.err
	}
	message := append(*o.buf, ']')
	*o.buf = message[:0]
	c := o.conn
	// The cause must be known before the library cuts the connection: the reader sees only that it is cut.
	late := time.AfterFunc(c.hub.Patience, func() { c.end(silent("a message was not taken in time")) })
	defer late.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), c.hub.Patience+100*time.Millisecond)
	defer cancel()
	if o.err = c.ws.Write(ctx, websocket.MessageText, message); o.err != nil {
		c.end(closing{code: normalCode}) // the peer went, unless it was late
		return o.err
	}
	c.wrote.Store(time.Now().UnixNano())
	c.hub.stats.messages.Add(1)
	c.hub.stats.bytes.Add(int64(len(message)))
	return nil
}
