package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/server/live"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(crowdEnv); spec != "" {
		os.Exit(crowd(spec))
	}
	goleak.VerifyTestMain(m)
}

// doors is the authentication of tests: tokens and cookies that name accounts.
type doors struct {
	mu     sync.Mutex
	tokens map[string]live.Principal
	asked  int
}

func (d *doors) Authenticate(r *http.Request) (live.Principal, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if cookie, err := r.Cookie("session"); err == nil {
		token = cookie.Value
	}
	if token == "broken" {
		return live.Principal{}, errors.New("the database is away")
	}
	p, ok := d.tokens[token]
	if !ok {
		return p, fault.New(fault.Denied, "unauthenticated", "no such token")
	}
	return p, nil
}

func (d *doors) open(token string, account event.ID, expires time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens[token] = live.Principal{Account: account, Expires: expires}
}

func (d *doors) shut(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tokens, token)
}

// world is one database with an account, a conversation and tokens, and any number of replicas.
type world struct {
	t            testing.TB
	base         *dbtest.Database
	db           *db.DB // of the writer
	doors        *doors
	team         dbtest.Team
	conversation event.ID
}

func newWorld(t testing.TB) *world {
	base := dbtest.New(t)
	w := &world{t: t, base: base, db: base.Open(t, dbtest.Server, func(o *db.Options) { o.Log = quiet() }), doors: &doors{tokens: map[string]live.Principal{}}}
	w.team = dbtest.NewTeam(t, w.db, "demo")
	w.conversation = w.team.Converse(t, w.db)
	w.doors.open("owner", w.team.Account, time.Time{})
	return w
}

// replica is one server: its own database connections, hub and address.
type replica struct {
	hub    *live.Hub
	db     *db.DB
	server *httptest.Server
	stop   context.CancelFunc
	ran    chan struct{}
	once   sync.Once
}

func (w *world) replica(change ...func(*live.Config)) *replica {
	w.t.Helper()
	d, err := db.Open(context.Background(), db.Options{URL: w.base.URL(dbtest.Server), Name: "live replica", Keys: w.base.Keys, Blobs: w.base.Blobs, Log: quiet()})
	if err != nil {
		w.t.Fatal(err)
	}
	config := live.Config{DB: d, Authenticate: w.doors, Log: quiet()}
	for _, c := range change {
		c(&config)
	}
	hub, err := live.New(context.Background(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &replica{hub: hub, db: d, stop: stop, ran: make(chan struct{})}
	go func() { hub.Run(ctx); close(r.ran) }()
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/live", hub)
	r.server = httptest.NewUnstartedServer(mux)
	r.server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if tcp, ok := conn.(*net.TCPConn); ok && state == http.StateNew {
			tcp.SetWriteBuffer(64 << 10) // what lies in the kernel's buffers is not counted by the hub
		}
	}
	r.server.Start()
	w.t.Cleanup(r.close)
	return r
}

func (r *replica) close() {
	r.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		r.hub.Drain(ctx)
		r.stop()
		<-r.ran
		r.server.Close()
		r.db.Close()
	})
}

func (r *replica) url() string { return r.server.URL + "/api/v1/live" }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// got is any frame.
type got struct {
	Type        string          `json:"type"`
	Topic       live.Topic      `json:"topic"`
	Position    int64           `json:"position"`
	Head        int64           `json:"head"`
	LogID       event.ID        `json:"log_id"`
	Incarnation int64           `json:"incarnation"`
	Code        string          `json:"code"`
	Kind        string          `json:"kind"`
	Data        json.RawMessage `json:"data"`
	Run         event.ID        `json:"run"`
	Epoch       int64           `json:"epoch"`
	Step        int64           `json:"step"`
	Attempt     int64           `json:"attempt"`
	From        int64           `json:"from"`
	Seq         int64           `json:"seq"`
	Text        string          `json:"text"`
}

var schema = sync.OnceValue(func() *jsonschema.Schema {
	return jsonschema.NewCompiler().MustCompile("../../docs/reference/live.schema.json#/$defs/server_message")
})

// client is one socket of a test. Every message that it gets is checked against the schema.
type client struct {
	t     testing.TB
	ws    *websocket.Conn
	hello got
	ready []got
	bytes int
}

func connect(url string, header http.Header) (*websocket.Conn, *http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ws, response, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: header})
	if err == nil {
		ws.SetReadLimit(4 << 20)
	}
	return ws, response, err
}

// tryDial connects and authenticates; it fails when the replica is away.
func tryDial(t testing.TB, r *replica, token string) (*client, error) {
	ws, _, err := connect(r.url(), nil)
	if err != nil {
		return nil, err
	}
	c := &client{t: t, ws: ws}
	if err := c.send(map[string]any{"type": "auth", "token": token}); err != nil {
		return nil, err
	}
	c.hello, err = c.next()
	if err == nil && c.hello.Type != "hello" {
		t.Errorf("first frame %+v", c.hello)
	}
	return c, err
}

func dial(t testing.TB, r *replica, token string) *client {
	t.Helper()
	c, err := tryDial(t, r, token)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { c.ws.CloseNow() })
	return c
}

func (c *client) send(message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return c.ws.Write(ctx, websocket.MessageText, data)
}

func (c *client) subscribe(topic any, after int64) error {
	return c.send(map[string]any{"type": "subscribe", "topic": topic, "after": after, "log_id": c.hello.LogID, "incarnation": c.hello.Incarnation})
}

// next answers the next frame, in at most 15 s.
func (c *client) next() (got, error) {
	if len(c.ready) == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		_, data, err := c.ws.Read(ctx)
		if err != nil {
			return got{}, err
		}
		c.bytes += len(data)
		var any any
		if err := json.Unmarshal(data, &any); err != nil {
			c.t.Errorf("message %.200q: %v", data, err)
		}
		if err := schema().Validate(any); err != nil {
			c.t.Errorf("message %.400s: %v", data, err)
		}
		if err := json.Unmarshal(data, &c.ready); err != nil {
			return got{}, err
		}
	}
	first := c.ready[0]
	c.ready = c.ready[1:]
	return first, nil
}

// until reads to the first frame of a type, which must come, and answers the frames before it too.
func (c *client) until(kind string) []got {
	c.t.Helper()
	var all []got
	for begin := time.Now(); ; {
		f, err := c.next()
		if err != nil || time.Since(begin) > 20*time.Second {
			c.t.Fatalf("waiting for %s after %d frames in %v: %v", kind, len(all), time.Since(begin), err)
		}
		all = append(all, f)
		if f.Type == kind {
			return all
		}
	}
}

// closed reads to the end and answers the close code and reason.
func (c *client) closed() (websocket.StatusCode, string) {
	for {
		if _, err := c.next(); err != nil {
			var ce websocket.CloseError
			if !errors.As(err, &ce) {
				c.t.Logf("ended by %v", err)
			}
			return websocket.CloseStatus(err), ce.Reason
		}
	}
}

// positions of the events among frames.
func positions(frames []got) []int64 {
	var all []int64
	for _, f := range frames {
		if f.Type == "event" {
			all = append(all, f.Position)
		}
	}
	return all
}

// facts answers the positions of a topic's events, from the log.
func (w *world) facts(topic event.ID) []int64 {
	w.t.Helper()
	return w.read(db.Scope{Topic: topic}, func(*event.Record) bool { return true })
}

// read answers the positions of what is wanted in a scope.
func (w *world) read(scope db.Scope, wanted func(*event.Record) bool) []int64 {
	w.t.Helper()
	var all []int64
	for after := int64(0); ; {
		records, err := w.db.Since(context.Background(), after, scope, 1000)
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range records {
			if wanted(&records[i]) {
				all = append(all, records[i].Position)
			}
		}
		if len(records) < 1000 {
			return all
		}
		after = records[len(records)-1].Position
	}
}

// settled waits until every event has a position.
func (w *world) settled() int64 {
	w.t.Helper()
	for {
		age, err := w.db.UnsequencedAge(context.Background())
		if err != nil {
			w.t.Fatal(err)
		}
		if age == nil {
			identity, err := w.db.Identity(context.Background())
			if err != nil {
				w.t.Fatal(err)
			}
			return identity.Head
		}
		time.Sleep(5 * time.Millisecond)
	}
}
