package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/account"
	"cairn/domain/event"
	"cairn/domain/file"
	"cairn/domain/space"
	"cairn/server"
	"cairn/server/auth"
	"cairn/server/live"
)

// world is two whole replicas on one database, each with its own connections.
type world struct {
	base *dbtest.Database
	db   *db.DB
	team dbtest.Team
	urls [2]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base := dbtest.New(t)
	w := &world{base: base, db: base.Open(t, dbtest.Server)}
	w.team = dbtest.NewTeam(t, w.db, "demo")
	for i := range w.urls {
		w.urls[i] = serve(t, server.Options{DB: base.Open(t, dbtest.Server)})
	}
	return w
}

// serve runs a server until the test ends.
func serve(t *testing.T, o server.Options) string {
	t.Helper()
	o.Limits, o.Version, o.Log = auth.Limits{Account: 1e6, Address: 1e6, Burst: 1e6}, "test", slog.New(slog.DiscardHandler)
	s, err := server.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(ctx, listener); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() { stop(); serving.Wait() })
	return "http://" + listener.Addr().String()
}

// cookie is a session of the account, made without the cost of a login.
func (w *world) cookie(t *testing.T, id event.ID, life time.Duration) (string, db.Session) {
	t.Helper()
	token := dbtest.NewID().String()
	hash := sha256.Sum256([]byte(token))
	s := db.Session{ID: dbtest.NewID(), Account: id, Hash: hash[:], Method: account.MethodCode}
	if err := w.db.AddSession(t.Context(), s, life, 1000); err != nil {
		t.Fatal(err)
	}
	return "cairn_session=" + token, s
}

// ask sends a request and answers the status and the cookie that was set.
func ask(t *testing.T, method, url, cookie string, body any) (int, string) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	set := ""
	for _, c := range response.Cookies() {
		set = c.Name + "=" + c.Value
	}
	return response.StatusCode, set
}

// watch opens a live socket and waits until it is greeted.
func watch(t *testing.T, url, cookie string) *websocket.Conn {
	t.Helper()
	header := http.Header{}
	if cookie != "" {
		header.Set("Cookie", cookie)
	}
	ws, _, err := websocket.Dial(t.Context(), url+"/api/v1/live", &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.CloseNow() })
	return ws
}

// TestSessionsEndOnOtherReplicas ends a session on one replica in every way there is: its sockets on the other one are
// closed within a second, long before the credential would be looked at again, and those of other sessions go on.
func TestSessionsEndOnOtherReplicas(t *testing.T) {
	w := newWorld(t)
	at := w.urls[0] + "/api/v1"
	const secret = "correct horse battery"
	ends := []struct {
		name string
		end  func(t *testing.T, id event.ID, cookie string, s db.Session) (stays string)
	}{
		{"logout", func(t *testing.T, id event.ID, cookie string, _ db.Session) string {
			stays, _ := w.cookie(t, id, time.Hour)
			wantStatus(t, 204)(ask(t, "POST", at+"/logout", cookie, nil))
			return stays
		}},
		{"revoked by another session", func(t *testing.T, id event.ID, _ string, s db.Session) string {
			stays, _ := w.cookie(t, id, time.Hour)
			wantStatus(t, 204)(ask(t, "DELETE", at+"/me/sessions/"+s.ID.String(), stays, nil))
			return stays
		}},
		{"a new password", func(t *testing.T, id event.ID, _ string, _ db.Session) string {
			stays, _ := w.cookie(t, id, time.Hour)
			wantStatus(t, 204)(ask(t, "POST", at+"/me/password", stays, map[string]string{"password": secret}))
			return stays
		}},
		{"replaced by a new login of the same browser", func(t *testing.T, id event.ID, cookie string, _ db.Session) string {
			code, err := auth.NewCode(t.Context(), w.db, id)
			if err != nil {
				t.Fatal(err)
			}
			status, fresh := ask(t, "POST", at+"/login", cookie, map[string]string{"email": id.String() + "@example.test", "code": code})
			wantStatus(t, 200)(status, "")
			return fresh
		}},
		{"account disabled", func(t *testing.T, id event.ID, _ string, _ db.Session) string {
			dbtest.Must(t, w.db, event.System, account.Disable{Account: id})
			return ""
		}},
		{"account erased", func(t *testing.T, id event.ID, _ string, _ db.Session) string {
			state, _, err := w.db.Load(t.Context(), account.Stream(id))
			if err != nil {
				t.Fatal(err)
			}
			dbtest.Must(t, w.db, event.System, account.Erase{Account: id, Claim: state.(account.State).Claim})
			return ""
		}},
	}
	for _, one := range ends {
		t.Run(one.name, func(t *testing.T) {
			id := dbtest.NewTeam(t, w.db, "demo").Account
			cookie, s := w.cookie(t, id, time.Hour)
			ws := watch(t, w.urls[1], cookie)
			if _, _, err := ws.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			stays := one.end(t, id, cookie, s)
			began := time.Now() // the answer says that it has ended: from now on it counts
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, _, err := ws.Read(ctx)
			took := time.Since(began)
			if code := websocket.CloseStatus(err); code != live.CodeSessionEnded || took > time.Second {
				t.Fatalf("closed with %d after %v: %v", code, took, err)
			}
			t.Logf("closed after %v", took)
			wantStatus(t, 401)(ask(t, "GET", w.urls[1]+"/api/v1/me", cookie, nil))
			if stays != "" {
				wantStatus(t, 200)(ask(t, "GET", w.urls[1]+"/api/v1/me", stays, nil))
			}
		})
	}
}

func wantStatus(t *testing.T, want int) func(int, string) {
	return func(status int, _ string) {
		t.Helper()
		if status != want {
			t.Errorf("answered %d, want %d", status, want)
		}
	}
}

// TestOtherSessionsGoOn keeps a socket of another session of the account open while one ends.
func TestOtherSessionsGoOn(t *testing.T) {
	w := newWorld(t)
	stays, _ := w.cookie(t, w.team.Account, time.Hour)
	ws := watch(t, w.urls[1], stays)
	for range 3 {
		ends, _ := w.cookie(t, w.team.Account, time.Hour)
		wantStatus(t, 204)(ask(t, "POST", w.urls[0]+"/api/v1/logout", ends, nil))
	}
	if got := topicAnswer(t, ws, w.team.Account.String()); got != "live" {
		t.Errorf("the other session's socket answers %s", got)
	}
}

// TestDisabledAccountIsAsUnknown: the right password of a disabled account is answered as a wrong one.
func TestDisabledAccountIsAsUnknown(t *testing.T) {
	w := newWorld(t)
	at := w.urls[0] + "/api/v1"
	email := w.team.Account.String() + "@example.test"
	cookie, _ := w.cookie(t, w.team.Account, time.Hour)
	wantStatus(t, 204)(ask(t, "POST", at+"/me/password", cookie, map[string]string{"password": "correct horse battery"}))
	right := map[string]string{"email": email, "password": "correct horse battery"}
	said := func(body map[string]string) string {
		t.Helper()
		raw, _ := json.Marshal(body)
		response, err := http.Post(at+"/login", "application/json", bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var problem struct {
			Code   string `json:"code"`
			Detail string `json:"detail"`
		}
		if err := json.NewDecoder(response.Body).Decode(&problem); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(response.StatusCode, problem, len(response.Cookies()))
	}
	dbtest.Must(t, w.db, event.System, account.Disable{Account: w.team.Account})
	wrong := said(map[string]string{"email": email, "password": "wrong horse battery"})
	if got := said(right); got != wrong || !strings.HasPrefix(got, "401 {login_refused") {
		t.Errorf("disabled: %s, wrong: %s", got, wrong)
	}
	dbtest.Must(t, w.db, event.System, account.Enable{Account: w.team.Account})
	wantStatus(t, 401)(ask(t, "GET", at+"/me", cookie, nil)) // what was ended stays ended
	wantStatus(t, 200)(ask(t, "POST", at+"/login", "", right))
}

// TestDisabledBeatsAnOpenSession is about a row of the vault that came back, as from an older backup.
func TestDisabledBeatsAnOpenSession(t *testing.T) {
	w := newWorld(t)
	cookie, s := w.cookie(t, w.team.Account, time.Hour)
	dbtest.Must(t, w.db, event.System, account.Disable{Account: w.team.Account})
	_, err := w.base.Conn(t, "").Exec(t.Context(), `INSERT INTO vault.credential (id, account_id, kind, hash, method, client, used_at, expires_at)
		VALUES ($1, $2, 'session', $3, 'code', '', now(), now() + interval '1 hour')`, s.ID, s.Account, s.Hash)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, 401)(ask(t, "GET", w.urls[0]+"/api/v1/me", cookie, nil))
}

// topics says what everyone gets of every kind of live topic: the frame that answers a subscription, or the code that
// the socket is closed with.
const topics = `
topic           anonymous stranger  member    auditor   admin     owner     expired revoked disabled
account         4401      not_found not_found not_found not_found live      4401    4401    4401
space           4401      not_found live      live      live      live      4401    4401    4401
space/activity  4401      not_found live      live      live      live      4401    4401    4401
agent           4401      not_found live      live      live      live      4401    4401    4401
conversation    4401      not_found live      live      live      live      4401    4401    4401
file            4401      not_found live      live      live      live      4401    4401    4401
run             4401      not_found not_found not_found not_found not_found 4401    4401    4401
task            4401      not_found live      live      live      live      4401    4401    4401
claim           4401      not_found not_found not_found not_found not_found 4401    4401    4401
`

// file stores one in the team's space.
func (w *world) file(t *testing.T) event.ID {
	t.Helper()
	stored, err := w.db.StoreContent(t.Context(), w.team.Space, strings.NewReader("x"), 10)
	if err != nil {
		t.Fatal(err)
	}
	mac := w.db.Keys().ClaimMAC("file", "a.txt")
	dbtest.Must(t, w.db, w.team.Actor(), file.Store{Space: w.team.Space, Files: []file.Upload{
		{Path: "a.txt", MAC: mac, Digest: stored.Digest, Content: stored.Content, MediaType: "text/plain"},
	}})
	return file.Stream(w.team.Space, mac).ID
}

// TestAuthorisationOfTopics subscribes as everyone to a thing of the team of every kind of stream.
func TestAuthorisationOfTopics(t *testing.T) {
	w := newWorld(t)
	conversation := w.team.Converse(t, w.db)
	state, _, err := w.db.Load(t.Context(), account.Stream(w.team.Account))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{
		"account": w.team.Account.String(), "space": w.team.Space.String(), "space/activity": w.team.Space.String() + "/activity", "agent": w.team.Agent.String(),
		"conversation": conversation.String(), "run": w.team.Post(t, w.db, conversation, "x").Run.String(), "claim": state.(account.State).Claim.String(),
		"task": w.team.Assign(t, w.db, "x").Task.String(), "file": w.file(t).String(),
	}
	cookies := w.everyone(t)
	lines := strings.Split(strings.TrimSpace(topics), "\n")
	who := strings.Fields(lines[0])[1:]
	for _, line := range lines[1:] {
		row := strings.Fields(line)
		for i, role := range who {
			ws := watch(t, w.urls[i%2], cookies[role])
			if cookies[role] == "" || row[i+1] == "4401" { // a cookie that counts for nothing is as none: a token is awaited
				send(t, ws, map[string]any{"type": "auth", "token": "none"})
			}
			if got := topicAnswer(t, ws, ids[row[0]]); got != row[i+1] {
				t.Errorf("%s of %s: %s, want %s", role, row[0], got, row[i+1])
			}
			ws.CloseNow()
		}
	}
}

// everyone has a cookie of each column of the table; anonymous has none.
func (w *world) everyone(t *testing.T) map[string]string {
	t.Helper()
	cookies := map[string]string{"anonymous": ""}
	give := func(role string, id event.ID, life time.Duration) db.Session {
		cookie, s := w.cookie(t, id, life)
		cookies[role] = cookie
		return s
	}
	join := func(role space.Role) event.ID {
		id := dbtest.NewTeam(t, w.db, "demo").Account
		dbtest.Must(t, w.db, w.team.Actor(), space.AddMember{Space: w.team.Space, Account: id, Role: role})
		return id
	}
	for _, role := range []space.Role{space.Member, space.Auditor, space.Admin} {
		give(string(role), join(role), time.Hour)
	}
	give("owner", w.team.Account, time.Hour)
	give("expired", w.team.Account, -time.Second)
	give("stranger", dbtest.NewTeam(t, w.db, "demo").Account, time.Hour)
	revoked := give("revoked", w.team.Account, time.Hour)
	if was, err := w.db.RevokeSession(t.Context(), revoked.Account, revoked.ID, account.ReasonRevoked); err != nil || !was {
		t.Fatalf("revoke: %v %v", was, err)
	}
	disabled := join(space.Admin)
	give("disabled", disabled, time.Hour)
	dbtest.Must(t, w.db, event.System, account.Disable{Account: disabled})
	return cookies
}

func send(t *testing.T, ws *websocket.Conn, message any) {
	t.Helper()
	raw, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	ws.Write(t.Context(), websocket.MessageText, raw) // a socket that is closed says why when it is read
}

// topicAnswer subscribes and answers what comes of it.
func topicAnswer(t *testing.T, ws *websocket.Conn, topic string) string {
	t.Helper()
	send(t, ws, map[string]any{"type": "subscribe", "topic": topic, "after": 0})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return fmt.Sprint(int(websocket.CloseStatus(err)))
		}
		var frames []struct{ Type, Code, Topic string }
		if err := json.Unmarshal(data, &frames); err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			switch {
			case f.Topic != topic:
			case f.Type == "ended":
				return f.Code
			case f.Type == "live":
				return "live"
			}
		}
	}
}
