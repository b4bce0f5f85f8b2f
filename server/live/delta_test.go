package live_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/event"
	"cairn/domain/run"
)

// speech folds deltas and facts into the text that a client shows for one run, as docs/reference/live.md says.
type speech struct {
	done                 map[int64]string // step -> text of the fact
	step, epoch, attempt int64
	seq                  int64
	whole                bool
	text                 string
}

func newSpeech() *speech { return &speech{done: map[int64]string{}, seq: -1} }

func (s *speech) fold(t testing.TB, f got) {
	switch {
	case f.Type == "event" && f.Kind == "run.model_answered":
		var fact struct {
			Step int64  `json:"step"`
			Text string `json:"text"`
		}
		if err := json.Unmarshal(f.Data, &fact); err != nil {
			t.Errorf("%s: %v", f.Data, err)
		}
		s.done[fact.Step] = fact.Text
		if fact.Step >= s.step {
			s.text = ""
		}
	case f.Type == "delta":
		s.hear(f)
	}
}

func (s *speech) hear(f got) {
	if _, done := s.done[f.Step]; done {
		return
	}
	later := f.Step > s.step || f.Step == s.step && (f.Epoch > s.epoch || f.Epoch == s.epoch && f.Attempt > s.attempt)
	same := f.Step == s.step && f.Epoch == s.epoch && f.Attempt == s.attempt
	switch {
	case later || same && f.From == 0:
		s.step, s.epoch, s.attempt, s.text, s.whole = f.Step, f.Epoch, f.Attempt, "", f.From == 0
	case !same, f.Seq <= s.seq:
		return
	case f.From != s.seq+1:
		s.whole = false // what is missing comes with the fact
	}
	s.seq = f.Seq
	if s.whole {
		s.text += f.Text
	}
}

// speak starts a run and returns what a worker of it needs.
func (w *world) speak() (run.Target, string) {
	w.t.Helper()
	posted := w.team.Post(w.t, w.db, w.conversation, "say something")
	target := run.Target{Run: posted.Run, Space: w.team.Space, Conversation: w.conversation}
	actor := event.WorkerActor("w1")
	dbtest.Must(w.t, w.db, actor, run.Start{Target: target, Worker: "w1", Host: "h1", Epoch: 1})
	return target, actor
}

// Words stream to clients of both replicas while the model speaks; with the fact all show the same text, also
// one that came in the middle and one whose replica lost words.
func TestWordsThenTheFact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.replica(), w.replica()
	worker := w.base.Open(t, dbtest.Worker)
	writer := worker.NewDeltaWriter()
	go writer.Run(t.Context())
	target, actor := w.speak()
	clients := []*client{dial(t, one, "owner"), dial(t, two, "owner"), nil}
	for _, c := range clients[:2] {
		c.subscribe(w.conversation, 0)
		c.until("live")
	}
	var text strings.Builder
	say := func(words int) {
		for range words {
			word := "wörd\n\"" + strings.Repeat("x", text.Len()%7) + "\" "
			text.WriteString(word)
			writer.Add(db.Delta{Space: target.Space, Topic: w.conversation, Run: target.Run, Epoch: 1, Step: 1, Attempt: 1, Text: word})
			time.Sleep(time.Millisecond)
		}
	}
	awaitListeners(t, w, 2)
	say(100)
	speeches := []*speech{newSpeech(), newSpeech(), newSpeech()}
	for i, c := range clients[:2] {
		for begin := time.Now(); speeches[i].text != text.String(); {
			f, err := c.next()
			if err != nil || time.Since(begin) > 10*time.Second {
				t.Fatalf("client %d: %v, has %q of %q", i, err, speeches[i].text, text.String())
			}
			speeches[i].fold(t, f)
		}
	}
	clients[2] = dial(t, two, "owner")
	clients[2].subscribe(w.conversation, 0)
	frames := append(clients[2].until("live"), clients[2].until("delta")...)
	for _, f := range frames {
		speeches[2].fold(t, f)
	}
	if speeches[2].text != text.String() {
		t.Errorf("who comes in the middle has %q of %q", speeches[2].text, text.String())
	}
	// Characters that need escapes must not make a notification too long.
	long := strings.Repeat("<\x01\"\\é", 2000)
	text.WriteString(long)
	writer.Add(db.Delta{Space: target.Space, Topic: w.conversation, Run: target.Run, Epoch: 1, Step: 1, Attempt: 1, Text: long})
	for begin := time.Now(); speeches[1].text != text.String(); {
		f, err := clients[1].next()
		if err != nil || time.Since(begin) > 10*time.Second {
			t.Fatalf("%v, has %d bytes of %d", err, len(speeches[1].text), text.Len())
		}
		speeches[1].fold(t, f)
	}
	w.loseWords(t)
	say(30)
	awaitListeners(t, w, 2)
	say(30)
	time.Sleep(100 * time.Millisecond)
	whole := text.String() + "end"
	dbtest.Must(t, w.db, actor, run.RecordAnswer{Target: target, Epoch: 1, Step: 1, Model: "demo", Text: whole, Finish: "stop"})
	for i, c := range clients {
		for begin := time.Now(); speeches[i].done[1] == ""; {
			f, err := c.next()
			if err != nil || time.Since(begin) > 10*time.Second {
				t.Fatalf("client %d: %v", i, err)
			}
			speeches[i].fold(t, f)
			if !strings.HasPrefix(whole, speeches[i].text) {
				t.Errorf("client %d shows %q, which is no beginning of the answer", i, speeches[i].text)
			}
		}
		if speeches[i].done[1] != whole || speeches[i].text != "" {
			t.Errorf("client %d has %q and %q", i, speeches[i].done[1], speeches[i].text)
		}
	}
}

const deltaListeners = `FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN cairn_delta'`

func awaitListeners(t *testing.T, w *world, n int) {
	t.Helper()
	conn := w.base.Conn(t, "")
	wait(t, "the replicas listen", func() bool {
		var count int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) "+deltaListeners).Scan(&count); err != nil {
			t.Fatal(err)
		}
		return count == n
	})
}

// loseWords ends one of the connections on which words are heard.
func (w *world) loseWords(t *testing.T) {
	t.Helper()
	if _, err := w.base.Conn(t, "").Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM (SELECT pid "+deltaListeners+" LIMIT 1) p"); err != nil {
		t.Fatal(err)
	}
}
