package live_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cairn/db/dbtest"
	"cairn/server/live"
)

func TestReplayThenTail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica()
	for range 60 {
		w.team.Post(t, w.db, w.conversation, "before")
	}
	w.settled()
	c := dial(t, r, "owner")
	if err := c.subscribe(w.conversation, 0); err != nil {
		t.Fatal(err)
	}
	frames := c.until("live")
	if frames[0].Type != "subscribed" || frames[0].Position != 0 {
		t.Errorf("first %+v", frames[0])
	}
	if got, want := positions(frames), w.facts(w.conversation); !slices.Equal(got, want) {
		t.Fatalf("replayed %v, want %v", got, want)
	}
	begin := time.Now()
	w.team.Post(t, w.db, w.conversation, "after: \x07 \"quoted\" é")
	frames = append(frames, c.until("event")...)
	t.Logf("post to frame %v", time.Since(begin))
	frames = append(frames, c.until("event")...)
	if got, want := positions(frames), w.facts(w.conversation); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	var data struct {
		Text string `json:"text"`
	}
	for _, f := range frames {
		if f.Kind == "conversation.message_posted" {
			json.Unmarshal(f.Data, &data)
		}
	}
	if !strings.HasSuffix(data.Text, "\"quoted\" é") {
		t.Errorf("content is not shown: %q", data.Text)
	}
	again := frames[len(frames)-1].Position
	if err := c.send(map[string]any{"type": "unsubscribe", "topic": w.conversation}); err != nil {
		t.Fatal(err)
	}
	if u := c.until("unsubscribed"); u[len(u)-1].Position < again {
		t.Errorf("unsubscribed %+v", u)
	}
	if s := r.hub.Stats(); s.Sockets != 1 || s.Topics != 0 || s.Encoded != int64(len(w.facts(w.conversation))) {
		t.Errorf("stats %+v", s)
	}
}

func TestEachEventIsSerialisedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica()
	clients := make([]*client, 20)
	for i := range clients {
		clients[i] = dial(t, r, "owner")
		if err := clients[i].subscribe(w.conversation, 0); err != nil {
			t.Fatal(err)
		}
		clients[i].until("live")
	}
	for range 10 {
		w.team.Post(t, w.db, w.conversation, "x")
	}
	w.settled()
	want := w.facts(w.conversation)
	for _, c := range clients {
		for c.until("event")[0].Position != want[len(want)-1] {
		}
	}
	if s := r.hub.Stats(); s.Encoded != int64(len(want)) || s.Events+s.Replayed != int64(20*len(want)) {
		t.Errorf("%d events to 20 sockets: %+v", len(want), s)
	}
}

func TestWhoMayConnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica(func(c *live.Config) { c.Patience = 300 * time.Millisecond; c.Origins = []string{"portal.example"} })
	w.doors.open("late", w.team.Account, time.Now().Add(-time.Second))
	host := strings.TrimPrefix(r.server.URL, "http://")
	cookie := func(value string) http.Header { return http.Header{"Cookie": {"session=" + value}} }
	for name, test := range map[string]struct {
		header http.Header
		first  string // message
		code   websocket.StatusCode
	}{
		"cookie":                      {header: cookie("owner")},
		"cookie of the own page":      {header: http.Header{"Cookie": {"session=owner"}, "Origin": {"http://" + host}}},
		"cookie of a page allowed":    {header: http.Header{"Cookie": {"session=owner"}, "Origin": {"https://portal.example"}}},
		"token":                       {first: `{"type":"auth","token":"owner"}`},
		"bad cookie, good token":      {header: cookie("none"), first: `{"type":"auth","token":"owner"}`},
		"bad token":                   {first: `{"type":"auth","token":"none"}`, code: 4401},
		"expired":                     {first: `{"type":"auth","token":"late"}`, code: 4401},
		"cookie expired":              {header: cookie("late"), code: 4401},
		"nothing":                     {code: 4401},
		"subscribes first":            {first: `{"type":"subscribe","topic":"0198a000-0000-7000-8000-0000000000ff","after":0}`, code: 4401},
		"nonsense":                    {first: `hello`, code: 4400},
		"authenticator is away":       {header: cookie("broken"), code: 4500},
		"authenticates a second time": {header: cookie("owner"), first: `{"type":"auth","token":"owner"}`, code: 4400},
	} {
		t.Run(name, func(t *testing.T) {
			ws, _, err := connect(r.url(), test.header)
			if err != nil {
				t.Fatal(err)
			}
			defer ws.CloseNow()
			c := &client{t: t, ws: ws}
			if test.first != "" {
				ws.Write(t.Context(), websocket.MessageText, []byte(test.first))
			}
			if test.code == 0 {
				c.until("hello")
				return
			}
			if code, reason := c.closed(); code != test.code || !json.Valid([]byte(reason)) {
				t.Errorf("closed with %d %s, want %d", code, reason, test.code)
			}
		})
	}
	for name, test := range map[string]struct {
		url    string
		header http.Header
		status int
	}{
		"token in the address": {url: r.url() + "?token=owner", status: 400},
		"another origin":       {url: r.url(), header: http.Header{"Cookie": {"session=owner"}, "Origin": {"https://evil.example"}}, status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			_, response, err := connect(test.url, test.header)
			if err == nil || response.StatusCode != test.status {
				t.Errorf("answered %v, %v", response, err)
			}
		})
	}
}

func TestStrangersFindNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica()
	other := dbtest.NewTeam(t, w.db, "demo")
	w.doors.open("stranger", other.Account, time.Time{})
	c := dial(t, r, "stranger")
	for _, topic := range []any{w.conversation, w.team.Space, w.team.Account, w.team.Agent, dbtest.NewID()} {
		c.send(map[string]any{"type": "subscribe", "topic": topic, "after": 0})
		if f := c.until("ended"); f[len(f)-1].Code != "not_found" || len(positions(f)) != 0 {
			t.Errorf("%v: %+v", topic, f)
		}
	}
	for _, topic := range []any{other.Space, other.Account, other.Agent} {
		c.send(map[string]any{"type": "subscribe", "topic": topic, "after": 0})
		if f := c.until("live"); len(positions(f)) == 0 {
			t.Errorf("%v: %+v", topic, f)
		}
	}
}

func TestStartOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica()
	hello := dial(t, r, "owner").hello
	for name, m := range map[string]map[string]any{
		"beyond the head":     {"after": hello.Head + 1000, "log_id": hello.LogID, "incarnation": hello.Incarnation},
		"another log":         {"after": 1, "log_id": dbtest.NewID(), "incarnation": hello.Incarnation},
		"another incarnation": {"after": 1, "log_id": hello.LogID, "incarnation": hello.Incarnation + 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, r, "owner")
			m["type"], m["topic"] = "subscribe", w.conversation
			c.send(m)
			if code, reason := c.closed(); code != live.CodeStartOver || !strings.Contains(reason, `"start_over"`) {
				t.Errorf("closed with %d %s", code, reason)
			}
		})
	}
}

func TestSilenceIsBroken(t *testing.T) {
	w := newWorld(t)
	r := w.replica(func(c *live.Config) { c.Silence = 100 * time.Millisecond; c.Patience = 300 * time.Millisecond })
	c := dial(t, r, "owner")
	c.subscribe(w.conversation, 0)
	c.until("live")
	w.team.Post(t, w.db, w.conversation, "x")
	head := w.settled()
	for deadline := time.Now().Add(10 * time.Second); ; {
		f := c.until("ping")
		if f[len(f)-1].Position >= head {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("pings do not move on")
		}
	}
	// A peer that reads nothing answers no ping.
	dead, _, err := connect(r.url(), http.Header{"Cookie": {"session=owner"}})
	if err != nil {
		t.Fatal(err)
	}
	defer dead.CloseNow()
	wait(t, "the dead peer's socket is closed", func() bool { return r.hub.Stats().Closed[live.CodeSilent] == 1 }, c)
}

func TestDraining(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica()
	hints := map[int64]bool{}
	var clients []*client
	for range 10 {
		clients = append(clients, dial(t, r, "owner"))
	}
	go r.close()
	for _, c := range clients {
		code, reason := c.closed()
		var hint struct {
			Code    string `json:"code"`
			RetryMS int64  `json:"retry_ms"`
		}
		if err := json.Unmarshal([]byte(reason), &hint); err != nil || code != live.CodeDraining || hint.Code != "draining" || hint.RetryMS < 100 {
			t.Errorf("closed with %d %q: %v", code, reason, err)
		}
		hints[hint.RetryMS] = true
	}
	if len(hints) < 5 {
		t.Errorf("hints are not spread: %v", hints)
	}
}

// wait polls until the condition holds, while it keeps the given clients reading.
func wait(t *testing.T, what string, holds func() bool, reading ...*client) {
	t.Helper()
	for _, c := range reading {
		go func() {
			for {
				if _, _, err := c.ws.Read(t.Context()); err != nil {
					return
				}
			}
		}()
	}
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}
