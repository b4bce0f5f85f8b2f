package live

import (
	"context"
	"time"
)

// attend looks after all sockets: whether they live, and whether their credentials still count.
func (h *Hub) attend(ctx context.Context) {
	beat := time.NewTicker(h.Silence / 5)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-beat.C:
			h.mu.Lock()
			for c := range h.conns {
				c.beat(now)
			}
			h.mu.Unlock()
		}
	}
}

// beat does for one socket what is due. A peer that was silent is asked for a pong even while it is written
// to: what lies in the kernel's buffers says nothing about it.
func (c *conn) beat(now time.Time) {
	c.mu.Lock()
	expired := !c.expires.IsZero() && !now.Before(c.expires)
	if now.Sub(c.authAt) >= c.hub.Recheck {
		c.authDue, c.authAt = true, now
		c.nudge()
	}
	if now.Sub(time.Unix(0, c.wrote.Load())) >= c.hub.Silence {
		c.pingDue = true
		c.nudge()
	}
	c.mu.Unlock()
	if expired {
		c.end(sessionEnded())
	}
	if now.Sub(time.Unix(0, c.heard.Load())) >= c.hub.Silence && c.pinging.CompareAndSwap(false, true) {
		go c.ping()
	}
}

// ping waits for a pong, which the socket's reader sees.
func (c *conn) ping() {
	defer c.pinging.Store(false)
	ctx, cancel := context.WithTimeout(c.ctx, c.hub.Patience)
	defer cancel()
	if err := c.ws.Ping(ctx); err != nil {
		c.end(silent("no pong in time"))
		return
	}
	c.heard.Store(time.Now().UnixNano())
}
