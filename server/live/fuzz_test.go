package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"
	"pgregory.net/rapid"

	"cairn/domain/event"
	"cairn/server/live"
)

// documented are the codes with which the server closes, as docs/reference/live.md lists them.
var documented = []websocket.StatusCode{1000, 1009, 4400, 4401, 4403, 4408, 4409, 4429, 4500, 4503}

// FuzzClient sends lines as messages, those that begin with 0xff as binary ones. Whatever they are, what comes
// back fits the schema, and the socket ends with a documented code.
func FuzzClient(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", "[]", `"x"`, `{"type":"auth","token":"owner"}`, `{"type":"auth","token":"` + string(bytes.Repeat([]byte("t"), 9000)) + `"}`,
		`{"type":"subscribe","topic":"0198a000-0000-7000-8000-0000000000ff","after":0}`,
		"{\"type\":\"unsubscribe\",\"topic\":\"0198a000-0000-7000-8000-0000000000ff\"}\n{\"type\":\"subscribe\",\"topic\":\"TOPIC\",\"after\":0}",
		"{\"type\":\"subscribe\",\"topic\":\"TOPIC\",\"after\":0}\n{\"type\":\"subscribe\",\"topic\":\"TOPIC\",\"after\":0}\n{\"type\":\"unsubscribe\",\"topic\":\"TOPIC\"}",
		`{"type":"subscribe","topic":"TOPIC","after":-1}`, `{"type":"subscribe","topic":"TOPIC","after":9223372036854775807}`,
		`{"type":"subscribe","topic":"TOPIC","after":9223372036854775807,"log_id":"TOPIC","incarnation":1}`,
		`{"type":"subscribe","topic":"TOPIC","after":1e400}`, `{"type":"subscribe","topic":"TOPIC","after":0.5}`, `{"type":"subscribe","topic":"TOPIC","after":1}`,
		`{"type":"subscribe","topic":"TOPIC/activity","after":0}`, `{"type":"unsubscribe","topic":"/activity"}`,
		`{"type":"subscribe","topic":null,"after":0}`, `{"type":"subscribe","topic":"TOPIC","after":0,"extra":1}`, `{"type":"subscribe","topic":"TOPIC","after":0}{}`,
		"\xff\x00\x01", "\x80\x81", `{"type":"\u0000"}`, "{\"type\":\"\x07é\"}",
	} {
		f.Add([]byte(seed))
	}
	w := newWorld(f)
	r := w.replica(func(c *live.Config) { c.Patience = 2 * time.Second })
	topic := []byte(w.conversation.String())
	f.Fuzz(func(t *testing.T, data []byte) {
		ws, _, err := connect(r.url(), http.Header{"Cookie": {"session=owner"}})
		if err != nil {
			t.Fatal(err)
		}
		defer ws.CloseNow()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c := &client{t: t, ws: ws}
		c.until("hello")
		lines := bytes.SplitN(bytes.ReplaceAll(data, []byte("TOPIC"), topic), []byte("\n"), 20)
		for _, line := range append(lines, []byte("the end")) {
			kind := websocket.MessageText
			if len(line) > 0 && line[0] == 0xff {
				kind = websocket.MessageBinary
			}
			if ws.Write(ctx, kind, line) != nil {
				break
			}
		}
		if code, reason := c.closed(); !slices.Contains(documented, code) || code != 1009 && !json.Valid([]byte(reason)) {
			t.Errorf("%q closed with %d %q", data, code, reason)
		}
	})
}

// stretch is what a client got of a topic between two orders about it.
type stretch struct {
	topic event.ID
	after int64
	got   []int64
	open  bool // it was still subscribed at the end
}

// Whatever a client orders while events are appended: each subscription gets exactly the events after its
// position, in order, up to where the next order ends it.
func TestAnyOrdersGetExactlyTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica(func(c *live.Config) { c.Tick = 2 * time.Millisecond })
	topics := []event.ID{w.conversation, w.team.Converse(t, w.db), w.team.Converse(t, w.db)}
	checks := 0
	rapid.Check(t, func(rt *rapid.T) {
		if checks++; checks > 25 {
			return // each check has a database behind it
		}
		c := dial(t, r, "owner")
		defer c.ws.CloseNow()
		steps := rapid.IntRange(1, 25).Draw(rt, "steps")
		for range steps {
			topic := topics[rapid.IntRange(0, 2).Draw(rt, "topic")]
			var err error
			switch rapid.SampledFrom([]string{"post", "post", "subscribe", "subscribe", "unsubscribe"}).Draw(rt, "what") {
			case "post":
				w.team.Post(t, w.db, topic, "x")
			case "subscribe":
				known := append([]int64{0}, w.facts(topic)...)
				err = c.subscribe(topic, known[rapid.IntRange(0, len(known)-1).Draw(rt, "after")])
			case "unsubscribe":
				err = c.send(map[string]any{"type": "unsubscribe", "topic": topic})
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		w.settled()
		all := map[event.ID][]int64{}
		for _, topic := range topics {
			all[topic] = w.facts(topic)
		}
		for _, s := range c.stretches(rt, topics, all) {
			begin, _ := slices.BinarySearch(all[s.topic], s.after+1)
			want := all[s.topic][begin:]
			if len(s.got) > len(want) || !slices.Equal(s.got, want[:len(s.got)]) || s.open && len(s.got) != len(want) {
				rt.Fatalf("after %d (open %v) got %v, the log has %v", s.after, s.open, s.got, want)
			}
		}
	})
}

// stretches ends with orders whose answers mark that everything before was answered, then reads what is missing
// of the topics that are still watched.
func (c *client) stretches(rt *rapid.T, topics []event.ID, all map[event.ID][]int64) []*stretch {
	marker := event.NameID(topics[0], []byte("marker"))
	if err := c.send(map[string]any{"type": "unsubscribe", "topic": marker}); err != nil {
		rt.Fatal(err)
	}
	var done []*stretch
	open := map[event.ID]*stretch{}
	complete := func() bool {
		for topic, s := range open {
			if want := all[topic]; s.after < want[len(want)-1] && (len(s.got) == 0 || s.got[len(s.got)-1] < want[len(want)-1]) {
				return false
			}
		}
		return true
	}
	for begin, marked := time.Now(), false; !marked || !complete(); {
		f, err := c.next()
		if err != nil || time.Since(begin) > 20*time.Second {
			rt.Fatalf("%v, in %v", err, time.Since(begin))
		}
		switch f.Type {
		case "subscribed", "unsubscribed":
			if marked = marked || f.Topic.ID == marker; f.Topic.ID == marker {
				continue
			}
			delete(open, f.Topic.ID)
			if f.Type == "subscribed" {
				open[f.Topic.ID] = &stretch{topic: f.Topic.ID, after: f.Position}
				done = append(done, open[f.Topic.ID])
			}
		case "event":
			if open[f.Topic.ID] == nil {
				rt.Fatalf("an event of a topic that is not watched: %+v", f)
			}
			open[f.Topic.ID].got = append(open[f.Topic.ID].got, f.Position)
		case "resync", "ended":
			rt.Fatalf("%+v", f)
		}
	}
	for _, s := range open {
		s.open = true
	}
	return done
}

// A client that floods is closed, and a socket watches a bounded number of topics.
func TestLimitsOfASocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica(func(c *live.Config) { c.MaxTopics = 1; c.MaxSockets = 2 })
	c := dial(t, r, "owner")
	c.subscribe(w.conversation, 0)
	c.until("live")
	c.subscribe(w.team.Space, 0)
	if f := c.until("ended"); f[len(f)-1].Code != "too_many_topics" {
		t.Errorf("%+v", f)
	}
	other := dial(t, r, "owner")
	if _, response, err := connect(r.url(), nil); err == nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a third socket: %v, %v", response, err)
	}
	for range 400 {
		if other.send(map[string]any{"type": "unsubscribe", "topic": w.conversation}) != nil {
			break
		}
	}
	if code, reason := other.closed(); code != live.CodeTooMany {
		t.Errorf("closed with %d %s", code, reason)
	}
}
