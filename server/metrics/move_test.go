package metrics_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/db/runtoken"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
)

// moved is how much a metric grew.
func moved(before, after scrape, name string, labels ...string) float64 {
	a, _ := before.value(name, labels...)
	b, _ := after.value(name, labels...)
	return b - a
}

// A message is one flush of some events, which get positions and pass the tail; its run waits in a queue.
func TestAMessageMovesTheLogsMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil)
	before := w.eventually("the tail has what the test began with", func(s scrape) bool {
		all, _ := s.value("cairn_appended_events_total")
		position, _ := s.value("cairn_tailer_position")
		sequenced, _ := s.value("cairn_sequenced_events_total")
		return position == all && sequenced == all
	})
	before.want(t, 0, "cairn_runs", "state", "queued")
	before.want(t, 0, "cairn_queue_jobs", "queue", "default", "state", "available")
	before.want(t, 1, "cairn_database_reachable")
	w.team.Post(t, w.db, w.conversation, "hello")
	after := w.eventually("the counts of runs are asked again", func(s scrape) bool {
		n, _ := s.value("cairn_runs", "state", "queued")
		lag := moved(before, s, "cairn_tailer_lag_seconds")
		return n == 1 && lag > 0
	})
	events := moved(before, after, "cairn_appended_events_total")
	if events < 3 {
		t.Errorf("%v events were appended", events)
	}
	for _, name := range []string{"cairn_appends_total", "cairn_append_duration_seconds"} {
		if n := moved(before, after, name); n != 1 {
			t.Errorf("%s moved by %v, want 1", name, n)
		}
	}
	for _, name := range []string{"cairn_sequenced_events_total", "cairn_tailer_position"} {
		if n := moved(before, after, name); n != events {
			t.Errorf("%s moved by %v, want %v", name, n, events)
		}
	}
	if n := moved(before, after, "cairn_sequence_batch_duration_seconds"); n < 1 {
		t.Errorf("%v batches got positions", n)
	}
	after.want(t, 1, "cairn_queue_jobs", "queue", "default", "state", "available")
	after.want(t, 0, "cairn_runs", "state", "running")
	after.want(t, 0, "cairn_conflicts_total")
	after.want(t, 0, "cairn_append_failures_total")
	after.want(t, 1, "cairn_build_info", "version", "test")
	w.eventually("notifications arrive", func(s scrape) bool { n, _ := s.value("cairn_listen_alive"); return n == 1 })
	if _, there := after.value("cairn_unsequenced_age_seconds"); there {
		t.Error("an age of nothing")
	}
}

// A second process moves the stream that this one remembers: its next append loses once.
func TestConflicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil)
	w.team.Post(t, w.db, w.conversation, "ours")
	other := w.base.Open(t, dbtest.Server)
	w.team.Post(t, other, w.conversation, "theirs")
	before := w.scrape()
	w.team.Post(t, w.db, w.conversation, "ours again")
	after := w.scrape()
	if conflicts, appends := moved(before, after, "cairn_conflicts_total"), moved(before, after, "cairn_appends_total"); conflicts != 1 || appends != 1 {
		t.Errorf("%v conflicts and %v appends, want 1 and 1", conflicts, appends)
	}
}

// While nobody gives positions the age is there and grows; then it is absent again.
func TestUnsequencedAge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, func(o *db.Options) { o.NoPositions = true })
	first, there := w.scrape().value("cairn_unsequenced_age_seconds")
	time.Sleep(20 * time.Millisecond)
	second, _ := w.scrape().value("cairn_unsequenced_age_seconds")
	if !there || first <= 0 || second <= first {
		t.Errorf("the age is %v (there: %v), then %v", first, there, second)
	}
	w.base.Open(t, dbtest.Server)
	w.eventually("nothing waits", func(s scrape) bool { _, waits := s.value("cairn_unsequenced_age_seconds"); return !waits })
}

// While a table does not answer, what it would say is absent, and the rest is there.
func TestDatabaseThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil)
	conn := w.base.Conn(t, "")
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE view.run IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	s := w.scrape()
	s.want(t, 0, "cairn_database_reachable")
	if s["cairn_runs"] != nil || s["cairn_queue_jobs"] != nil || s["cairn_appends_total"] == nil {
		t.Errorf("runs %v, jobs %v, appends %v", s["cairn_runs"], s["cairn_queue_jobs"], s["cairn_appends_total"])
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = w.eventually("the database answers again", func(s scrape) bool { n, _ := s.value("cairn_database_reachable"); return n == 1 })
	s.want(t, 0, "cairn_runs", "state", "queued")
}

// The queue of a single process has an id in its name, which is no label.
func TestQueueOfASingleProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil)
	for _, queue := range []string{conversation.LocalQueue + dbtest.NewID().String(), "mine"} {
		id := dbtest.NewID()
		dbtest.Must(t, w.db, w.team.Actor(), conversation.Open{
			Conversation: id, Space: w.team.Space, Agent: w.team.Agent, Title: "Test", Source: run.Source{Kind: run.SourceNone}, Queue: queue,
		})
		w.team.Post(t, w.db, id, "hello")
	}
	s := w.scrape()
	s.want(t, 1, "cairn_queue_jobs", "queue", "local", "state", "available")
	s.want(t, 1, "cairn_queue_jobs", "queue", "other", "state", "available")
	s.want(t, 0, "cairn_queue_jobs", "queue", "default", "state", "available")
	s.want(t, 2, "cairn_runs", "state", "queued")
}

// Requests are counted by route, and nothing that a client makes up becomes a label.
func TestRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil)
	id := w.conversation.String()
	w.ask("GET", w.url+"/healthz")
	w.ask("GET", w.url+"/api/v1/conversations/"+id)
	w.ask("GET", w.url+"/nothing/"+id)
	w.ask("BREW", w.url+"/healthz")
	w.ask("DELETE", w.url+"/healthz")
	w.ask("GET", w.url+"/gateway/v1/"+id)
	w.ask("GET", w.url+"/gateway/v1")
	s := w.scrape()
	name := "cairn_http_requests_total"
	s.want(t, 1, name, "route", "/healthz", "method", "GET", "status", "2xx")
	s.want(t, 1, name, "route", "/api/v1/conversations/{conversation}", "method", "GET", "status", "4xx")
	s.want(t, 1, name, "route", "none", "method", "GET", "status", "4xx")
	s.want(t, 1, name, "route", "none", "method", "GET", "status", "3xx") // its pattern would be what was asked for
	s.want(t, 1, name, "route", "none", "method", "other", "status", "4xx")
	s.want(t, 1, name, "route", "none", "method", "DELETE", "status", "4xx")
	s.want(t, 1, "cairn_http_request_duration_seconds", "route", "/healthz", "method", "GET")
	if _, _, body := w.ask("GET", w.url+"/metrics"); regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-`).MatchString(body) {
		t.Error("there is an id in the metrics")
	}
}

// A socket is opening until it has said who it is, and counts as a request when it ends.
func TestSockets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil)
	socket, _, err := websocket.Dial(t.Context(), strings.Replace(w.url, "http", "ws", 1)+"/api/v1/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.eventually("a socket is opening", func(s scrape) bool { n, _ := s.value("cairn_sockets", "state", "opening"); return n == 1 })
	if err := socket.Write(t.Context(), websocket.MessageText, []byte(`{"type":"auth","token":"none"}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := socket.Read(t.Context()); websocket.CloseStatus(err) != 4401 {
		t.Errorf("the socket ended with %v", err)
	}
	w.eventually("the socket ended", func(s scrape) bool {
		n, _ := s.value("cairn_http_requests_total", "route", "/api/v1/live", "method", "GET", "status", "1xx")
		return n == 1
	})
	s := w.scrape() // the parts of one scrape are read side by side
	s.want(t, 1, "cairn_sockets_refused_total")
	s.want(t, 1, "cairn_sockets_closed_total", "code", "4401")
	s.want(t, 0, "cairn_sockets", "state", "opening")
	if _, there := s.value("cairn_http_request_duration_seconds", "route", "/api/v1/live", "method", "GET"); there {
		t.Error("the life of a socket is counted as the duration of a request")
	}
}

// A run asks the demo model.
func TestModelCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil)
	posted := w.team.Post(t, w.db, w.conversation, "hello")
	dbtest.Must(t, w.db, event.WorkerActor("w1"), run.Start{
		Target: run.Target{Run: posted.Run, Space: w.team.Space, Conversation: w.conversation}, Worker: "w1", Host: "h1", Epoch: 1,
	})
	token := runtoken.Mint(w.db.Keys().RunTokenKey(), posted.Run.String(), 1, time.Now().Add(time.Minute))
	for _, model := range []string{"demo", "made up by a client"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/gateway/v1/chat/completions",
			strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"hello"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	s := w.eventually("the call is counted", func(s scrape) bool {
		n, _ := s.value("cairn_model_calls_total", "model", "demo", "outcome", "ok")
		return n == 1
	})
	s.want(t, 1, "cairn_model_call_duration_seconds", "model", "demo")
	for _, direction := range []string{"input", "output"} {
		if n, _ := s.value("cairn_model_tokens_total", "model", "demo", "direction", direction); n <= 0 {
			t.Errorf("%v tokens of %s", n, direction)
		}
	}
	if n := len(s["cairn_model_calls_total"].GetMetric()); n != 1 {
		t.Errorf("%d series of model calls, want that of demo alone", n)
	}
}

// The page for operators has every metric, and no other.
func TestPageHasEveryMetric(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	source := ""
	for _, name := range []string{"metrics.go", "collect.go"} {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source += string(code)
	}
	known := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?:desc|counter|histogram)\("([a-z_]+)"|Name: "([a-z_]+)"`).FindAllStringSubmatch(source, -1) {
		name := "cairn_" + strings.TrimPrefix(found[1]+found[2], "cairn_")
		known[name] = true
		if !strings.Contains(string(text), "`"+name) {
			t.Errorf("the page lacks %s", name)
		}
	}
	for _, found := range regexp.MustCompile("`(cairn_[a-z_]+)").FindAllStringSubmatch(string(text), -1) {
		if !known[strings.TrimSuffix(found[1], "_bucket")] {
			t.Errorf("the page has %s, which does not exist", found[1])
		}
	}
	if len(known) < 30 {
		t.Errorf("only %d metrics were found: is the pattern right?", len(known))
	}
}
