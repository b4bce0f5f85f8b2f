package live

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"cairn/domain/event"
)

const (
	burst      = 200 // messages that a client may send at once,
	perSecond  = 20  // and then each second
	normalCode = websocket.StatusNormalClosure
)

// conn is one socket.
//
//	opening --authenticated--> open --end(why)--> closing --handshake done, or 5 s--> gone
type conn struct {
	hub        *Hub
	ws         *websocket.Conn
	credential *http.Request
	ctx        context.Context // ends with the socket; for questions to the database
	cancel     context.CancelFunc
	account    event.ID // set once, before the hub knows the socket
	parts      sync.WaitGroup
	done       chan struct{} // closed by the first end
	wake       chan struct{} // there is something for the writer

	heard   atomic.Int64 // when the peer was last heard, Unix nanoseconds
	wrote   atomic.Int64 // when the last message was written
	pinging atomic.Bool

	subs map[Topic]*sub // of the writer alone

	mu         sync.Mutex
	cause      *closing
	expires    time.Time
	orders     []message // from the client
	queue      []item    // from the tail
	queued     int       // bytes in queue
	overflowed bool      // the queue was dropped: live topics must stop
	pingDue    bool
	authDue    bool
	authAt     time.Time // when the credential was last looked at
}

// item is what the tail hands to one subscription.
type item struct {
	sub    *sub
	frames []frame
}

// accept upgrades the request. The library refuses pages of other origins with 403.
func (h *Hub) accept(w http.ResponseWriter, r *http.Request) (*conn, error) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: h.Origins, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(maxMessage)
	c := &conn{
		hub: h, ws: ws, credential: credential(r, ""), done: make(chan struct{}), wake: make(chan struct{}, 1), subs: map[Topic]*sub{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// serve reads until the socket ends, and leaves nothing behind.
func (c *conn) serve() {
	admitted := c.authenticate()
	c.hub.enter(c, admitted)
	if admitted {
		c.parts.Go(c.write)
		c.read()
	}
	c.end(closing{code: normalCode})
	c.parts.Wait()
	c.hub.leave(c)
}

// end closes the socket for a reason; only the first one counts. It does not wait.
func (c *conn) end(why closing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return
	}
	c.cause = &why
	close(c.done)
	c.cancel()
	reason := ""
	if why.name != "" {
		reason = why.reason()
	}
	c.parts.Go(func() { c.ws.Close(why.code, reason) })
}

// nudge wakes the writer.
func (c *conn) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// authenticate takes the cookie or waits for the first message.
func (c *conn) authenticate() bool {
	late := time.AfterFunc(c.hub.Patience, func() { c.end(unauthenticated("no auth in time")) })
	defer late.Stop()
	if len(c.credential.Header) > 0 && c.admitAs(c.credential) {
		return true
	}
	for c.ctx.Err() == nil {
		kind, data, err := c.ws.Read(context.Background())
		if err != nil {
			return false
		}
		m, err := parse(data)
		switch {
		case kind != websocket.MessageText:
			c.end(badMessage("messages are text"))
		case err != nil:
			c.end(badMessage(err.Error()))
		case m.Type != "auth":
			c.end(unauthenticated("the first message must be auth"))
		case c.admitAs(credential(c.credential, m.Token)):
			return true
		default:
			c.end(unauthenticated("the token counts for nothing"))
		}
	}
	return false
}

// admitAs asks who the credential belongs to and remembers it.
func (c *conn) admitAs(credential *http.Request) bool {
	p, ok, err := c.hub.who(c.ctx, credential)
	if err != nil {
		if c.ctx.Err() == nil {
			c.hub.Log.Warn("a socket cannot be authenticated", "error", err)
		}
		c.end(unavailable())
		return false
	}
	if ok {
		c.credential, c.account, c.expires, c.authAt = credential, p.Account, p.Expires, time.Now()
	}
	return ok
}

// read takes the client's messages.
func (c *conn) read() {
	allowance, since := float64(burst), time.Now()
	for {
		kind, data, err := c.ws.Read(context.Background())
		if err != nil {
			return
		}
		now := time.Now()
		c.heard.Store(now.UnixNano())
		allowance, since = min(burst, allowance+perSecond*now.Sub(since).Seconds())-1, now
		m, err := parse(data)
		switch {
		case allowance < 0:
			c.end(tooMany("at most 20 messages a second, 200 at once"))
		case kind != websocket.MessageText:
			c.end(badMessage("messages are text"))
		case err != nil:
			c.end(badMessage(err.Error()))
		case m.Type == "auth":
			c.end(badMessage("already authenticated"))
		}
		c.mu.Lock()
		ended := c.cause != nil
		if !ended {
			c.orders = append(c.orders, m)
		}
		c.mu.Unlock()
		if ended {
			return
		}
		c.nudge()
	}
}

// enter makes an authenticated socket known.
func (h *Hub) enter(c *conn, admitted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opening--
	if !admitted {
		return
	}
	now := time.Now().UnixNano()
	c.heard.Store(now)
	c.wrote.Store(now)
	h.conns[c] = struct{}{}
	h.stats.opened.Add(1)
	if h.draining {
		c.end(draining())
	}
}

// leave forgets a socket whose goroutines have ended.
func (h *Hub) leave(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.conns[c]; !ok {
		h.stats.refused.Add(1)
	}
	delete(h.conns, c)
	h.stats.closed(c.cause.code)
}
