package live

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"cairn/db"
	"cairn/domain/account"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/space"
)

// topic is what is watched by at least one socket of this replica.
type topic struct {
	last int64 // the newest event of the topic that passed the tail since somebody watches
	subs map[*sub]struct{}
}

// crowd is the number of sockets from which batches come half as often: each write costs a system call.
const crowd = 256

// begin stands at the head of the log as it is now.
func (h *Hub) begin(ctx context.Context) error {
	identity, err := h.DB.Identity(ctx)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.identity, h.position = identity, identity.Head
	h.frames.forget()
	clear(h.words)
	for c := range h.conns {
		c.end(startOver("the log was restored"))
	}
	return nil
}

// at answers which log this is and how far the tail has handed it out.
func (h *Hub) at() db.Cursor {
	h.mu.Lock()
	defer h.mu.Unlock()
	return db.Cursor{LogID: h.identity.LogID, Incarnation: h.identity.Incarnation, Position: h.position}
}

// follow is the one tail of this replica. It goes on from where it stood whatever fails, so that no event is
// passed over; only in another log, or another life of this one, it stands at the head anew.
func (h *Hub) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := h.DB.Tail(ctx, h.at(), db.Scope{}, func(records []event.Record) error { h.dispatch(ctx, records); return nil })
		if fault.HasCode(err, "start_over") {
			err = h.begin(ctx)
		}
		if err != nil && ctx.Err() == nil {
			h.Log.Warn("the log cannot be followed", "error", err)
		}
		pause(ctx, 250*time.Millisecond)
	}
}

// pause waits, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// dispatch hands records to whoever watches, and then waits a tick: what is appended meanwhile is the next
// batch.
func (h *Hub) dispatch(ctx context.Context, records []event.Record) {
	encoded := h.encode(ctx, records)
	h.mu.Lock()
	pending := map[Topic][]frame{}
	for i := range records {
		r := &records[i]
		if concerns(r) { // whoever it may shut out is asked about before it is handed out, not a moment after
			h.hand(pending)
			h.reconsider(r)
		}
		for _, t := range topicsOf(r) {
			h.place(r, t, encoded[placed{i, t.Activity}], pending)
		}
		h.settle(r)
	}
	h.hand(pending)
	h.position = records[len(records)-1].Position
	tick := h.Tick
	if len(h.conns) >= crowd {
		tick *= 2
	}
	h.mu.Unlock()
	lag := time.Since(records[len(records)-1].RecordedAt)
	h.stats.lag.Store(int64(lag))
	if h.Lag != nil {
		h.Lag(lag)
	}
	pause(ctx, tick)
}

// placed names one frame of a batch: that of its record i.
type placed struct {
	i        int
	activity bool
}

// encode serialises the records whose topics are watched, outside the lock: opening one may ask for a key.
func (h *Hub) encode(ctx context.Context, records []event.Record) map[placed]frame {
	var wanted []placed
	h.mu.Lock()
	for i := range records {
		for _, t := range topicsOf(&records[i]) {
			if h.topics[t] != nil {
				wanted = append(wanted, placed{i, t.Activity})
			}
		}
	}
	h.mu.Unlock()
	encoded := make(map[placed]frame, len(wanted))
	for _, p := range wanted {
		r := &records[p.i]
		one, fresh, err := h.frames.of(ctx, r, topicOf(r, p.activity))
		if err != nil {
			h.Log.Warn("an event cannot be shown", "position", r.Position, "kind", r.Kind, "error", err)
			continue
		}
		encoded[p] = one
		if fresh {
			h.stats.encoded.Add(1)
		}
	}
	return encoded
}

// place puts a record's frame with those of a topic. When it has none (it could not be encoded, or somebody
// began to watch just now), those who are live read the log instead, if they do not have it already.
func (h *Hub) place(r *event.Record, t Topic, one frame, pending map[Topic][]frame) {
	watched := h.topics[t]
	if watched == nil {
		return
	}
	watched.last = r.Position
	if one.text != nil {
		pending[t] = append(pending[t], one)
		return
	}
	for s := range watched.subs {
		s.conn.reread(s, r.Position)
	}
}

// hand queues what is pending, and empties it.
func (h *Hub) hand(pending map[Topic][]frame) {
	for id, frames := range pending {
		for s := range h.topics[id].subs {
			s.conn.deliver(s, frames)
		}
		delete(pending, id)
	}
}

// concerns reports whether an event may change what somebody may watch.
func concerns(r *event.Record) bool {
	switch r.Kind {
	case (space.MemberRemoved{}).Kind(), (space.MemberRoleChanged{}).Kind(), (space.Erased{}).Kind():
		return true
	}
	return shutsOut(r)
}

// shutsOut reports whether an event may end sessions of its account. A refusal that is recorded does not: there may be
// many of them.
func shutsOut(r *event.Record) bool {
	switch r.Kind {
	case (account.ActionDenied{}).Kind(), (account.DenialsCounted{}).Kind():
		return false
	}
	return strings.HasPrefix(r.Kind, account.Kind+".")
}

// reconsider stops what the event may have ended, until the sockets have asked anew.
func (h *Hub) reconsider(r *event.Record) {
	if r.Kind == (space.Erased{}).Kind() || r.Kind == (account.Erased{}).Kind() {
		h.frames.forget()
		clear(h.words)
	}
	if shutsOut(r) {
		for c := range h.conns {
			if c.account == r.StreamID {
				c.doubt()
			}
		}
		return
	}
	var who struct {
		Account event.ID `json:"account"` // zero, also when it cannot be read: everybody
	}
	if json.Unmarshal(r.Data, &who) != nil {
		who.Account = event.ID{}
	}
	for _, watched := range h.topics {
		for s := range watched.subs {
			if who.Account.IsZero() || who.Account == s.conn.account {
				s.conn.suspend(s, r.SpaceID)
			}
		}
	}
}
