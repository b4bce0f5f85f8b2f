package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/space"
	"cairn/server/api"
)

// pages reads a list to its end and answers the items in order.
func pages[T any](t *testing.T, p *person, path string, limit int) []T {
	t.Helper()
	var all []T
	next := ""
	for range 100 {
		url := fmt.Sprintf("%s?limit=%d", path, limit)
		if next != "" {
			url += "&cursor=" + next
		}
		got := into[api.List[T]](p.do("GET", url, nil).want(http.StatusOK))
		if len(got.Items) > limit || got.NextCursor != nil && len(got.Items) < limit {
			t.Fatalf("%s: %d items on a page of %d, next %v", path, len(got.Items), limit, got.NextCursor)
		}
		all = append(all, got.Items...)
		if got.NextCursor == nil {
			return all
		}
		next = *got.NextCursor
	}
	t.Fatalf("%s has no end", path)
	return nil
}

// sameAtAnySize reads a list with several page sizes: the same items in the same order, each once, newest first.
func sameAtAnySize[T any](t *testing.T, p *person, path string, want int, key func(T) string, order func(T) time.Time) {
	t.Helper()
	var first []string
	for _, limit := range []int{200, 1, 2, want, want + 1} {
		var keys []string
		items := pages[T](t, p, path, limit)
		for i, item := range items {
			keys = append(keys, key(item))
			if i > 0 && order(items[i-1]).Before(order(item)) {
				t.Errorf("%s: item %d is newer than the one before it", path, i)
			}
		}
		if first == nil {
			first = keys
		}
		if len(keys) != want || !slices.Equal(first, keys) {
			t.Errorf("%s with limit %d: %d items %v, want %d: %v", path, limit, len(keys), keys, want, first)
		}
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(first)))
	if len(distinct) != len(first) {
		t.Errorf("%s repeats items", path)
	}
}

func TestPages(t *testing.T) {
	w := newWorld(t, open)
	p := w.owner(t)
	at := "/spaces/" + w.team.Space.String()
	agentPath := "/agents/" + w.team.Agent.String()
	var thread event.ID
	for i := range 5 {
		p.do("POST", "/spaces", map[string]any{"name": "S", "slug": fmt.Sprintf("s-%d", i)}).want(http.StatusCreated)
		p.do("POST", at+"/agents", map[string]any{"name": fmt.Sprint(i), "model": "demo"}).want(http.StatusCreated)
		p.do("PATCH", agentPath, map[string]any{"name": fmt.Sprint(i)}).want(http.StatusOK)
		thread = into[api.ConversationOpened](p.do("POST", at+"/conversations", map[string]any{"agent_id": w.team.Agent, "title": fmt.Sprint(i)}).want(http.StatusCreated)).Conversation
		w.joined(t, space.Auditor)
		w.session(t, w.team.Account, time.Hour)
	}
	for i := range 5 {
		p.do("POST", "/conversations/"+thread.String()+"/messages", map[string]any{"text": fmt.Sprint(i)}).want(http.StatusAccepted)
	}
	sameAtAnySize(t, p, "/spaces", 6, func(s api.Space) string { return s.ID.String() }, func(s api.Space) time.Time { return s.CreatedAt })
	sameAtAnySize(t, p, at+"/memberships", 6, func(m api.Membership) string { return m.Account.String() }, func(m api.Membership) time.Time { return m.Since })
	sameAtAnySize(t, p, at+"/agents", 6, func(a api.AgentSummary) string { return a.ID.String() }, func(a api.AgentSummary) time.Time { return a.RevisedAt })
	sameAtAnySize(t, p, agentPath+"/revisions", 6, func(a api.Agent) string { return fmt.Sprint(a.Revision) }, func(a api.Agent) time.Time { return a.RevisedAt })
	sameAtAnySize(t, p, at+"/conversations", 5, func(c api.Conversation) string { return c.ID.String() }, func(c api.Conversation) time.Time { return c.ChangedAt })
	sameAtAnySize(t, p, "/conversations/"+thread.String()+"/messages", 5, func(m api.Message) string { return *m.Text }, func(m api.Message) time.Time { return m.PostedAt })
	sameAtAnySize(t, p, "/me/sessions", 6, func(s api.Session) string { return s.ID.String() }, func(s api.Session) time.Time { return s.CreatedAt })
	cursor := *into[api.List[api.Space]](p.do("GET", "/spaces?limit=1", nil)).NextCursor
	p.do("GET", at+"/agents?cursor="+cursor, nil).problem(http.StatusBadRequest, "invalid_cursor")
}

// TestEqualTimes pages over conversations that changed at the very same moment.
func TestEqualTimes(t *testing.T) {
	w := newWorld(t, open)
	w.database.SkipReplay("the times of the projection are made equal by hand")
	p := w.owner(t)
	for range 7 {
		w.team.Converse(t, w.db)
	}
	w.sql(t, "UPDATE view.conversation SET changed_at = '2026-01-01'")
	sameAtAnySize(t, p, "/spaces/"+w.team.Space.String()+"/conversations", 7, func(c api.Conversation) string { return c.ID.String() }, func(c api.Conversation) time.Time { return c.ChangedAt })
}

// TestIdempotency races one key on every POST that appends: one effect, and the same answer for all.
func TestIdempotency(t *testing.T) {
	w := newWorld(t, open)
	for _, op := range w.operations(t) {
		if op.Method != "POST" || !slices.ContainsFunc(op.Parameters, func(p parameter) bool { return p.Name == "Idempotency-Key" }) {
			continue
		}
		p, _ := w.session(t, w.team.Account, time.Hour)
		at := w.target(t, op, w.team.Account)
		key := []string{"Idempotency-Key", "key-of-" + op.OperationID}
		before := w.events(t)
		body := goodBody(t, op, at)
		answers := map[string]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				h := p.do(op.Method, at.path(op), body, key...)
				mu.Lock()
				defer mu.Unlock()
				answers[fmt.Sprintf("%d %s", h.status, h.body)]++
			})
		}
		all.Wait()
		once := w.events(t) - before
		if len(answers) != 1 {
			t.Errorf("%s answered one key with %v", op.OperationID, answers)
		}
		// The same again later, and then another request under the same key.
		again := p.do(op.Method, at.path(op), body, key...)
		if answers[fmt.Sprintf("%d %s", again.status, again.body)] == 0 {
			t.Errorf("%s answers the key later with %d %s", op.OperationID, again.status, again.body)
		}
		other := w.target(t, op, w.team.Account)
		start := w.events(t)
		body = goodBody(t, op, other)
		switch op.OperationID {
		case "agent-create":
			body = map[string]any{"name": "Another", "model": "demo"}
		case "task-open":
			body = map[string]any{"agent_id": other.agent, "title": "Another", "prompt": "x"}
		case "conversation-open":
			body = map[string]any{"agent_id": other.agent, "title": "Another"}
		}
		p.do(op.Method, other.path(op), body, key...).problem(http.StatusConflict, "idempotency_key_reused")
		if now := w.events(t); now != start || once < 1 || once > 3 {
			t.Errorf("%s: %d events by the first use, %d by another one", op.OperationID, once, now-start)
		}
	}
}

// TestKeysOfOthers gives two accounts the same key: neither hears of the other.
func TestKeysOfOthers(t *testing.T) {
	w := newWorld(t, open)
	a := w.owner(t)
	b := w.signIn(t, w.joined(t, space.Member))
	thread := w.team.Converse(t, w.db)
	post := func(p *person) event.ID {
		return into[conversation.Posted](p.do("POST", "/conversations/"+thread.String()+"/messages", map[string]any{"text": "x"}, "Idempotency-Key", "k").want(http.StatusAccepted)).Run
	}
	first := post(a)
	if post(b) == first || post(a) != first {
		t.Error("a key reaches beyond its account")
	}
}
