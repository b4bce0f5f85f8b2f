package live

// What the tail does to a socket: append to its queue or mark it, and wake its writer. It never waits.

import "cairn/domain/event"

// frameCost is what a queued frame takes beside its text, in bytes.
const frameCost = 48

// deliver queues frames for a live subscription. When they do not fit, the queue is dropped and the client is
// told to subscribe again; a batch that is too big even for an empty queue is read from the log instead.
func (c *conn) deliver(s *sub, frames []frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.phase != live || c.overflowed {
		return
	}
	for len(frames) > 0 && frames[0].position <= s.cursor {
		frames = frames[1:]
	}
	if len(frames) == 0 {
		return
	}
	size := 0
	for _, f := range frames {
		size += len(f.text) + frameCost
	}
	switch {
	case c.queued+size <= c.hub.QueueBytes:
		s.cursor = frames[len(frames)-1].position
		c.queue = append(c.queue, item{s, frames})
		c.queued += size
		c.hub.stats.queuedMost(int64(c.queued))
	case c.queued == 0:
		s.phase = replaying
	default:
		c.queue, c.queued, c.overflowed = nil, 0, true
		c.hub.stats.overflows.Add(1)
	}
	c.nudge()
}

// deliverDelta queues words that are not facts, unless the queue is half full already.
func (c *conn) deliverDelta(s *sub, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.phase != live || c.overflowed {
		return
	}
	if c.queued+len(text)+frameCost > c.hub.QueueBytes/2 {
		c.hub.stats.deltasDropped.Add(1)
		return
	}
	c.queue = append(c.queue, item{s, []frame{{text: text}}})
	c.queued += len(text) + frameCost
	c.nudge()
}

// reread makes a live subscription that does not have the position yet read the log itself.
func (c *conn) reread(s *sub, position int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.phase == live && s.cursor < position {
		s.phase = replaying
		c.nudge()
	}
}

// suspend sends nothing more of a subscription until its permission was checked again. Those whose space is
// not known yet are being checked: they are checked once more.
func (c *conn) suspend(s *sub, owner event.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.space.IsZero() && s.space != owner {
		return
	}
	s.check = true
	if s.phase == live {
		s.phase = replaying
	}
	c.nudge()
}

// doubt makes the writer look at the credential again before it writes anything.
func (c *conn) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.authDue = true
	c.nudge()
}
