package live

import (
	"fmt"
	"time"

	"cairn/db"
	"cairn/domain/event"
	"cairn/domain/fault"
)

const (
	page     = 100 // events that a socket reads at once
	attempts = 6   // of a read, before the socket is closed
	between  = 200 * time.Millisecond
)

// obey does what the client asked for.
func (c *conn) obey(out *outgoing, m message) {
	old := c.subs[m.Topic]
	if m.Type == "unsubscribe" {
		position := int64(0)
		if old != nil {
			position = old.sent
			c.drop(old)
		}
		out.add(encode(topicFrame{"unsubscribed", m.Topic, position}))
		return
	}
	if old != nil {
		c.drop(old)
	}
	if len(c.subs) >= c.hub.MaxTopics {
		out.add(encode(endedFrame{"ended", m.Topic, *m.After, "too_many_topics", fmt.Sprintf("a socket watches at most %d topics", c.hub.MaxTopics)}))
		return
	}
	if !c.checkCursor(m.cursor()) {
		return
	}
	s := &sub{conn: c, topic: m.Topic, sent: *m.After, check: true}
	c.subs[m.Topic] = s
	c.hub.watch(s)
	out.add(encode(topicFrame{"subscribed", m.Topic, s.sent}))
}

// checkCursor closes the socket when the cursor is not of this log. A position that the log has given but this
// replica's reading of the head does not show yet cannot be: the head is read now.
func (c *conn) checkCursor(cursor db.Cursor) bool {
	for failures := 0; ; failures++ {
		identity, err := c.hub.DB.Identity(c.ctx)
		if err == nil {
			if err = identity.Check(cursor); err == nil {
				return true
			}
			if fault.HasCode(err, "start_over") {
				c.end(startOver(err.Error()))
				return false
			}
		}
		if !c.again(failures, err) {
			return false
		}
	}
}

// again waits before another attempt, and gives the socket up after too many.
func (c *conn) again(failures int, err error) bool {
	if c.ctx.Err() != nil {
		return false
	}
	if failures >= attempts {
		c.hub.Log.Warn("a socket cannot be served", "error", err)
		c.end(unavailable())
		return false
	}
	pause(c.ctx, between)
	return c.ctx.Err() == nil
}

// replayOne reads one page for one of the subscriptions that replay, any one. It answers whether there are
// more.
func (c *conn) replayOne(out *outgoing) bool {
	var one *sub
	more := false
	c.mu.Lock()
	for _, s := range c.subs {
		if s.phase == replaying {
			more = one != nil
			if one = s; more {
				break
			}
		}
	}
	c.mu.Unlock()
	if one == nil {
		return false
	}
	done, err := c.replay(out, one)
	if err != nil {
		one.failures++
		return c.again(one.failures, err)
	}
	one.failures = 0
	return more || !done
}

// replay checks the permission if need be, writes the next page, and joins the tail when nothing is missing.
// It is done when the subscription does not replay any more.
func (c *conn) replay(out *outgoing, s *sub) (done bool, err error) {
	if ended, err := c.checkAccess(out, s); ended || err != nil {
		return ended, err
	}
	before := c.hub.at().Position
	records, frames, err := c.readPage(s)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	doubtful := s.check
	c.mu.Unlock()
	if doubtful {
		return false, nil // the membership changed while the page was read: ask before it is sent
	}
	for i, f := range frames {
		s.sent = records[i].Position
		out.add(f.text)
	}
	c.hub.stats.replayed.Add(int64(len(frames)))
	if len(frames) == page {
		return false, out.flush()
	}
	s.sent = max(s.sent, before) // all that the tail had handed out was there to be read
	if !c.hub.join(s) {
		return false, out.flush()
	}
	out.add(encode(topicFrame{"live", s.topic, s.sent}))
	for _, said := range c.hub.spoken(s.topic) {
		out.add(said)
	}
	return true, nil
}

func (c *conn) readPage(s *sub) ([]event.Record, []frame, error) {
	select {
	case c.hub.reading <- struct{}{}:
		defer func() { <-c.hub.reading }()
	case <-c.ctx.Done():
		return nil, nil, c.ctx.Err()
	}
	records, err := c.hub.DB.Since(c.ctx, s.sent, s.topic.scope(), page)
	if err != nil {
		return nil, nil, err
	}
	frames := make([]frame, len(records))
	for i := range records {
		var fresh bool
		if frames[i], fresh, err = c.hub.frames.of(c.ctx, &records[i], s.topic); err != nil {
			return nil, nil, err
		}
		if fresh {
			c.hub.stats.encoded.Add(1)
		}
	}
	return records, frames, nil
}

// checkAccess asks whether the topic may still be watched, when that is in doubt, and ends it when not.
func (c *conn) checkAccess(out *outgoing, s *sub) (ended bool, err error) {
	c.mu.Lock()
	check, first := s.check, s.space.IsZero()
	s.check = false // before the question: what changes meanwhile is asked again
	c.mu.Unlock()
	if !check {
		return false, nil
	}
	owner, err := c.hub.Authorize.Allowed(c.ctx, Principal{Account: c.account}, s.topic)
	c.mu.Lock()
	if err != nil {
		s.check = true
	} else {
		s.space = owner
	}
	c.mu.Unlock()
	if err == nil || !refused(err) {
		return false, err
	}
	code := "access_ended"
	if first {
		code = "not_found"
		if c.hub.Denied != nil {
			c.hub.Denied(c.account, s.topic)
		}
	}
	out.add(encode(endedFrame{"ended", s.topic, s.sent, code, "there is no such topic that you may watch"}))
	c.hub.stats.ended.Add(1)
	c.drop(s)
	return true, nil
}

// watch makes the tail note what passes of the topic.
func (h *Hub) watch(s *sub) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[s.topic]
	if t == nil {
		t = &topic{subs: map[*sub]struct{}{}}
		h.topics[s.topic] = t
	}
	t.subs[s] = struct{}{}
}

// join makes a subscription live, unless the tail has passed an event that it has not read.
func (h *Hub) join(s *sub) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.check || h.topics[s.topic].last > s.sent {
		return false
	}
	s.phase, s.cursor = live, s.sent
	return true
}

// drop ends a subscription on both sides.
func (c *conn) drop(s *sub) {
	delete(c.subs, s.topic)
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[s.topic]; t != nil {
		delete(t.subs, s)
		if len(t.subs) == 0 {
			delete(h.topics, s.topic)
		}
	}
}

func (c *conn) unsubscribeAll() {
	for _, s := range c.subs {
		c.drop(s)
	}
}
