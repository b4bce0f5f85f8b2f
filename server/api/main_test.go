package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/account"
	"cairn/domain/event"
	"cairn/domain/space"
	"cairn/server"
	"cairn/server/api"
	"cairn/server/auth"
	"cairn/server/proxy"
)

// open limits do not get into the way of tests that are about something else.
var open = auth.Limits{Account: 1e6, Address: 1e6, Burst: 1e6}

// world is a real server with a team in its database.
type world struct {
	*httptest.Server
	database *dbtest.Database
	db       *db.DB
	team     dbtest.Team
	logged   *logged
}

// logged is what the server writes into its log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newWorld(t *testing.T, limits auth.Limits) *world {
	t.Helper()
	return newWorldBehind(t, limits, nil)
}

// newWorldBehind is one whose server believes these proxies.
func newWorldBehind(t *testing.T, limits auth.Limits, proxies proxy.Trusted) *world {
	t.Helper()
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	w := &world{database: base, db: d, team: dbtest.NewTeam(t, d, "demo"), logged: &logged{}}
	s, err := server.New(t.Context(), server.Options{DB: d, Limits: limits, Proxies: proxies, Version: "test", Log: slog.New(slog.NewTextHandler(w.logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	w.Server = httptest.NewServer(s.Handler())
	t.Cleanup(w.Close)
	return w
}

// person is somebody with a cookie jar of one cookie, or none.
type person struct {
	t       *testing.T
	w       *world
	account event.ID
	cookie  string
}

// stranger has not signed in.
func (w *world) stranger(t *testing.T) *person { return &person{t: t, w: w} }

// signIn signs the account in with a code.
func (w *world) signIn(t *testing.T, id event.ID) *person {
	t.Helper()
	p := &person{t: t, w: w, account: id}
	code, err := auth.NewCode(t.Context(), w.db, id)
	if err != nil {
		t.Fatal(err)
	}
	p.login(map[string]any{"email": email(id), "code": code}).want(http.StatusOK)
	return p
}

// owner is the team's person, signed in.
func (w *world) owner(t *testing.T) *person { t.Helper(); return w.signIn(t, w.team.Account) }

func email(id event.ID) string { return id.String() + "@example.test" }

// heard is an answer.
type heard struct {
	t       *testing.T
	what    string
	status  int
	header  http.Header
	cookies []*http.Cookie
	body    []byte
}

func (p *person) login(body any) *heard {
	p.t.Helper()
	h := p.do("POST", "/login", body)
	for _, c := range h.cookies {
		p.cookie = c.Name + "=" + c.Value
	}
	return h
}

// do sends a request; body may be text, bytes or a value; header has names and values in turn.
func (p *person) do(method, path string, body any, header ...string) *heard {
	p.t.Helper()
	var reader io.Reader
	mediaType := "application/json"
	switch b := body.(type) {
	case nil:
	case form:
		reader, mediaType = b.encode(p.t)
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			p.t.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	if strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") {
		path = api.Prefix + path
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.w.URL+strings.TrimPrefix(path, "//root"), reader)
	if err != nil {
		p.t.Fatal(err)
	}
	if reader != nil {
		r.Header.Set("Content-Type", mediaType)
	}
	if p.cookie != "" {
		r.Header.Set("Cookie", p.cookie)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	response, err := p.w.Client().Do(r)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	return &heard{t: p.t, what: method + " " + path, status: response.StatusCode, header: response.Header, cookies: response.Cookies(), body: raw}
}

func (h *heard) want(status int) *heard {
	h.t.Helper()
	if h.status != status {
		h.t.Fatalf("%s answered %d, want %d: %.500s", h.what, h.status, status, h.body)
	}
	return h
}

// problem wants a problem with a status and a code; an empty code is any.
func (h *heard) problem(status int, code string) api.Problem {
	h.t.Helper()
	h.want(status)
	p := into[api.Problem](h)
	if h.header.Get("Content-Type") != "application/problem+json" || p.Code == "" || code != "" && p.Code != code || p.Status != status ||
		p.Title == "" || p.Detail == "" || p.RequestID == "" || p.RequestID != h.header.Get("X-Request-Id") {
		h.t.Fatalf("%s answered %s %s, want a whole problem with code %q", h.what, h.header.Get("Content-Type"), h.body, code)
	}
	return p
}

func into[T any](h *heard) T {
	h.t.Helper()
	var v T
	if err := json.Unmarshal(h.body, &v); err != nil {
		h.t.Fatalf("%s: %v: %.300s", h.what, err, h.body)
	}
	return v
}

// events is how many events the log has.
func (w *world) events(t *testing.T) int64 {
	t.Helper()
	var n int64
	if err := w.db.Pool().QueryRow(t.Context(), "SELECT count(*) FROM log.event").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// opened is a new account, joined one with a role in the team's space.
func (w *world) opened(t *testing.T) event.ID {
	t.Helper()
	return dbtest.NewTeam(t, w.db, "demo").Account
}

func (w *world) joined(t *testing.T, role space.Role) event.ID {
	t.Helper()
	id := w.opened(t)
	dbtest.Must(t, w.db, w.team.Actor(), space.AddMember{Space: w.team.Space, Account: id, Role: role})
	return id
}

func (w *world) erase(t *testing.T, id event.ID) {
	t.Helper()
	state, _, err := w.db.Load(t.Context(), account.Stream(id))
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Must(t, w.db, event.System, account.Erase{Account: id, Claim: state.(account.State).Claim})
}

// raw sends bytes and reads what comes within a second.
func (w *world) raw(t *testing.T, request string) []byte {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(time.Second))
	answer, _ := io.ReadAll(conn) // ends by the deadline where the server keeps the connection
	return answer
}

// sql changes what no interface can, as the owner of the database.
func (w *world) sql(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := w.database.Conn(t, "").Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func (w *world) row(t *testing.T, to any, query string, args ...any) {
	t.Helper()
	if err := w.database.Conn(t, "").QueryRow(t.Context(), query, args...).Scan(to); err != nil {
		t.Fatal(err)
	}
}
