package api_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/domain/event"
	"cairn/server/api"
	"cairn/server/auth"
)

const secret = "correct horse battery"

// withPassword signs in with a code and sets a password.
func (w *world) withPassword(t *testing.T, id event.ID) *person {
	t.Helper()
	p := w.signIn(t, id)
	p.do("POST", "/me/password", map[string]any{"password": secret}).want(http.StatusNoContent)
	return p
}

func TestSignIn(t *testing.T) {
	w := newWorld(t, open)
	code, err := auth.NewCode(t.Context(), w.db, w.team.Account)
	if err != nil {
		t.Fatal(err)
	}
	who := email(w.team.Account)
	first := w.stranger(t)
	typed := strings.ToLower(strings.ReplaceAll(code, "-", " "))
	h := first.login(map[string]any{"email": strings.ToUpper(who), "code": typed}).want(http.StatusOK)
	if c := h.cookies[0]; len(h.cookies) != 1 || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge < 2*int(auth.SessionLife.Seconds()) || c.Name != "cairn_session" || len(c.Value) != 43 {
		t.Errorf("the cookie is %+v", h.cookies)
	}
	w.stranger(t).login(map[string]any{"email": who, "code": code}).problem(http.StatusUnauthorized, "login_refused")
	first.do("POST", "/me/password", map[string]any{"password": "short"}).problem(http.StatusUnprocessableEntity, "")
	first.do("POST", "/me/password", map[string]any{"password": strings.Repeat("é", 12)}).problem(http.StatusUnprocessableEntity, "invalid_field")
	// A new password ends the other sessions and every code that is left.
	other := w.signIn(t, w.team.Account)
	left, _ := auth.NewCode(t.Context(), w.db, w.team.Account)
	first.do("POST", "/me/password", map[string]any{"password": secret}).want(http.StatusNoContent)
	other.do("GET", "/me", nil).problem(http.StatusUnauthorized, "session_required")
	w.stranger(t).login(map[string]any{"email": who, "code": left}).problem(http.StatusUnauthorized, "login_refused")
	second := w.stranger(t)
	second.login(map[string]any{"email": who, "password": secret}).want(http.StatusOK)
	second.do("POST", "/me/password", map[string]any{"password": "another long secret"}).problem(http.StatusForbidden, "password_refused")
	second.do("POST", "/me/password", map[string]any{"password": "another long secret", "current_password": secret}).want(http.StatusNoContent)
	w.stranger(t).login(map[string]any{"email": who, "password": secret}).problem(http.StatusUnauthorized, "login_refused")
	// A code is good for replacing a forgotten password, but not for as long as the session goes on.
	forgetful := w.signIn(t, w.team.Account)
	forgetful.do("POST", "/me/password", map[string]any{"password": "yet another secret"}).want(http.StatusNoContent)
	w.sql(t, "UPDATE vault.credential SET created_at = now() - interval '61 minutes' WHERE kind = 'session'")
	forgetful.do("POST", "/me/password", map[string]any{"password": "one more secret"}).problem(http.StatusForbidden, "password_refused")
	w.stranger(t).login(map[string]any{"email": who, "password": secret, "code": code}).problem(http.StatusUnprocessableEntity, "invalid_field")
}

func TestSessions(t *testing.T) {
	w := newWorld(t, open)
	a, b := w.signIn(t, w.team.Account), w.signIn(t, w.team.Account)
	list := into[api.List[api.Session]](a.do("GET", "/me/sessions", nil).want(http.StatusOK))
	if len(list.Items) != 2 || list.Items[0].Current || !list.Items[1].Current {
		t.Fatalf("sessions are %+v", list.Items)
	}
	if life := time.Until(list.Items[0].ExpiresAt); life < auth.SessionLife-time.Minute || life > auth.SessionLife+time.Minute {
		t.Errorf("a session lives %v", life)
	}
	foreign := w.signIn(t, w.opened(t))
	foreign.do("DELETE", "/me/sessions/"+list.Items[0].ID.String(), nil).problem(http.StatusNotFound, "session_not_found")
	b.do("GET", "/me", nil).want(http.StatusOK)
	a.do("DELETE", "/me/sessions/"+list.Items[0].ID.String(), nil).want(http.StatusNoContent)
	b.do("GET", "/me", nil).problem(http.StatusUnauthorized, "session_required")
	if h := a.do("POST", "/logout", nil).want(http.StatusNoContent); h.cookies[0].MaxAge >= 0 || h.cookies[0].Value != "" {
		t.Errorf("logout leaves the cookie %+v", h.cookies)
	}
	a.do("GET", "/me", nil).problem(http.StatusUnauthorized, "session_required")
	// It slides: a session that was used long ago is extended by its next use.
	c, s := w.session(t, w.team.Account, time.Hour)
	w.sql(t, "UPDATE vault.credential SET used_at = now() - interval '2 hours' WHERE id = $1", s.ID)
	c.do("GET", "/me", nil).want(http.StatusOK)
	after, err := w.db.SessionByHash(t.Context(), s.Hash)
	if err != nil || time.Until(after.ExpiresAt) < auth.SessionLife-time.Minute {
		t.Errorf("the session ends at %v (%v)", after.ExpiresAt, err)
	}
}

// TestFixation plants a session that is known to somebody else.
func TestFixation(t *testing.T) {
	w := newWorld(t, open)
	planted := w.signIn(t, w.opened(t))
	victim := &person{t: t, w: w, account: w.team.Account, cookie: planted.cookie}
	w.withPassword(t, w.team.Account)
	victim.login(map[string]any{"email": email(w.team.Account), "password": secret}).want(http.StatusOK)
	if victim.cookie == planted.cookie {
		t.Fatal("the planted token was taken over")
	}
	if me := into[api.Me](planted.do("GET", "/me", nil).want(http.StatusOK)); me.Account == w.team.Account {
		t.Fatal("the planted token is the victim's session now")
	}
	both := &person{t: t, w: w, cookie: planted.cookie + "; " + victim.cookie}
	both.do("GET", "/me", nil).problem(http.StatusUnauthorized, "session_required")
	made := &person{t: t, w: w, cookie: "cairn_session=" + strings.Repeat("A", 43)}
	if h := made.login(map[string]any{"email": email(w.team.Account), "password": secret}).want(http.StatusOK); strings.Contains(h.cookies[0].Value, "AAAA") {
		t.Fatal("a token of the caller's choice became a session")
	}
}

// TestCookieOfOtherHosts looks at the cookie as a name that is not of this machine gets it.
func TestCookieOfOtherHosts(t *testing.T) {
	w := newWorld(t, open)
	w.withPassword(t, w.team.Account)
	p := w.stranger(t)
	good := map[string]any{"email": email(w.team.Account), "password": secret}
	h := p.do("POST", "/login", good, "Host", "cairn.example.test").want(http.StatusOK)
	c := h.cookies[0]
	if c.Name != "__Host-cairn_session" || !c.Secure || c.Path != "/" || c.Domain != "" || !c.HttpOnly {
		t.Errorf("the cookie is %+v", c)
	}
	p.cookie = "__Host-cairn_session=" + c.Value
	p.do("GET", "/me", nil, "Host", "cairn.example.test").want(http.StatusOK)
	p.cookie = "cairn_session=" + c.Value
	p.do("GET", "/me", nil, "Host", "cairn.example.test").problem(http.StatusUnauthorized, "session_required")
}

func TestOtherOriginsChangeNothing(t *testing.T) {
	w := newWorld(t, open)
	p := w.owner(t)
	before := w.events(t)
	body := map[string]any{"name": "Planted", "slug": "planted"}
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Origin", "https://evil.example", "Content-Type", "text/plain"},
	} {
		for _, path := range []string{"/spaces", "/logout", "/login", "/me/password"} {
			p.do("POST", path, body, header...).problem(http.StatusForbidden, "cross_origin")
		}
	}
	if after := w.events(t); after != before {
		t.Errorf("other origins left %d events", after-before)
	}
	p.do("POST", "/spaces", body, "Sec-Fetch-Site", "same-origin", "Origin", w.URL).want(http.StatusCreated)
}

// TestTokenInURL tries a good token everywhere but in the cookie.
func TestTokenInURL(t *testing.T) {
	w := newWorld(t, open)
	p := w.owner(t)
	_, token, _ := strings.Cut(p.cookie, "=")
	s := w.stranger(t)
	for _, query := range []string{"token", "access_token", "session", "cairn_session", "__Host-cairn_session", "key", "api_key"} {
		s.do("GET", "/me?"+query+"="+token, nil).problem(http.StatusUnauthorized, "session_required")
		p.do("GET", "/me?"+query+"="+token, nil).problem(http.StatusBadRequest, "unknown_parameter")
	}
	for _, header := range []string{"Authorization", "X-Api-Key", "X-Session"} {
		s.do("GET", "/me", nil, header, token).problem(http.StatusUnauthorized, "session_required")
		s.do("GET", "/me", nil, header, "Bearer "+token).problem(http.StatusUnauthorized, "session_required")
	}
	s.do("GET", "//root/api/v1/me;cairn_session="+token, nil).problem(http.StatusNotFound, "")
	// A code in the URL is not a way in either.
	code, _ := auth.NewCode(t.Context(), w.db, w.team.Account)
	s.do("POST", "/login?email="+email(w.team.Account)+"&code="+code, nil).problem(http.StatusBadRequest, "unknown_parameter")
	s.do("GET", "/login?code="+code, nil).problem(http.StatusMethodNotAllowed, "")
	if log := w.logged.String(); strings.Contains(log, token) || strings.Contains(log, code) {
		t.Error("a secret is in the log")
	}
}

// TestEnumeration asks with addresses that exist, with and without a password, and with one that does not.
func TestEnumeration(t *testing.T) {
	w := newWorld(t, open)
	withoutPassword := w.opened(t)
	w.withPassword(t, w.team.Account)
	tries := []struct {
		name string
		body map[string]any
	}{
		{"wrong password", map[string]any{"email": email(w.team.Account), "password": "wrong horse battery"}},
		{"no password", map[string]any{"email": email(withoutPassword), "password": "wrong horse battery"}},
		{"unknown address, password", map[string]any{"email": "nobody@example.test", "password": "wrong horse battery"}},
		{"wrong code", map[string]any{"email": email(withoutPassword), "code": "AAAAA-AAAAA-AAAAA-AAAAA"}},
		{"unknown address, code", map[string]any{"email": "nobody@example.test", "code": "AAAAA-AAAAA-AAAAA-AAAAA"}},
	}
	texts := map[string]string{}
	times := make([][]time.Duration, len(tries))
	for round := range 15 {
		for i, try := range tries {
			began := time.Now()
			h := w.stranger(t).do("POST", "/login", try.body)
			times[i] = append(times[i], time.Since(began))
			p := h.problem(http.StatusUnauthorized, "login_refused")
			if len(h.cookies) > 0 {
				t.Errorf("%s sets a cookie", try.name)
			}
			if round == 0 {
				texts[strings.ReplaceAll(string(h.body), p.RequestID, "")] = try.name
			}
		}
	}
	if len(texts) != 1 {
		t.Errorf("the answers differ: %v", texts)
	}
	// The smallest of several is what the work takes without the noise of a busy machine. One hash is 20 ms and
	// more; an answer without it would be under a quarter of the others.
	least, most := time.Hour, time.Duration(0)
	for i := range tries {
		smallest := slices.Min(times[i])
		t.Logf("%-26s %v", tries[i].name, smallest)
		least, most = min(least, smallest), max(most, smallest)
	}
	if most > 2*least {
		t.Errorf("the answers take %v to %v: time tells what exists", least, most)
	}
}

func TestRateLimits(t *testing.T) {
	w := newWorld(t, auth.Limits{Account: 0.01, Address: 0.1, Burst: 3})
	w.withPassword(t, w.team.Account) // one login and one change
	wrong := map[string]any{"email": email(w.team.Account), "password": "wrong horse battery"}
	for range 2 {
		w.stranger(t).do("POST", "/login", wrong).problem(http.StatusUnauthorized, "login_refused")
	}
	h := w.stranger(t).do("POST", "/login", wrong)
	h.problem(http.StatusTooManyRequests, "too_many_attempts")
	if after, err := strconv.Atoi(h.header.Get("Retry-After")); err != nil || after < 1 || after > 100 {
		t.Errorf("Retry-After is %q", h.header.Get("Retry-After"))
	}
	// The right password has to wait as well, and case does not make another account.
	w.stranger(t).do("POST", "/login", map[string]any{"email": strings.ToUpper(email(w.team.Account)), "password": secret}).problem(http.StatusTooManyRequests, "")
	// An address that does not exist is limited in the same way.
	for i := range 4 {
		want := http.StatusUnauthorized
		if i == 3 {
			want = http.StatusTooManyRequests
		}
		w.stranger(t).do("POST", "/login", map[string]any{"email": "nobody@example.test", "password": "wrong horse battery"}).problem(want, "")
	}
	// From one address many accounts: four times as many attempts, then none.
	limited := false
	for i := range 12 {
		limited = w.stranger(t).do("POST", "/login", map[string]any{"email": strconv.Itoa(i) + "@example.test", "password": "wrong horse battery"}).status == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("one address may try any number of accounts")
	}
}

// TestOneCodeRaced lets many use one code at once: one gets in.
func TestOneCodeRaced(t *testing.T) {
	w := newWorld(t, open)
	code, err := auth.NewCode(t.Context(), w.db, w.team.Account)
	if err != nil {
		t.Fatal(err)
	}
	var in int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			h := w.stranger(t).do("POST", "/login", map[string]any{"email": email(w.team.Account), "code": code})
			mu.Lock()
			defer mu.Unlock()
			if h.status == http.StatusOK {
				in++
			}
		})
	}
	all.Wait()
	if in != 1 {
		t.Errorf("%d signed in with one code", in)
	}
}

// TestSecretsStayInTheVault looks for them everywhere else.
func TestSecretsStayInTheVault(t *testing.T) {
	w := newWorld(t, open)
	code, _ := auth.NewCode(t.Context(), w.db, w.team.Account)
	p := w.stranger(t)
	p.login(map[string]any{"email": email(w.team.Account), "code": code}).want(http.StatusOK)
	p.do("POST", "/me/password", map[string]any{"password": secret}).want(http.StatusNoContent)
	p.do("POST", "/login", map[string]any{"email": email(w.team.Account), "password": map[string]any{"x": secret}}).problem(http.StatusUnprocessableEntity, "")
	_, token, _ := strings.Cut(p.cookie, "=")
	var found int
	for _, text := range []string{code, strings.ReplaceAll(code, "-", ""), secret, token} {
		w.row(t, &found, "SELECT count(*) FROM log.event WHERE data::text LIKE '%' || $1 || '%'", text)
		if found > 0 {
			t.Errorf("a secret is in %d events", found)
		}
		w.row(t, &found, "SELECT count(*) FROM vault.credential c WHERE c::text LIKE '%' || $1 || '%' OR position(convert_to($1, 'UTF8') IN c.hash) > 0", text)
		if found > 0 {
			t.Error("a secret is in the vault as it is")
		}
		if strings.Contains(w.logged.String(), text) {
			t.Error("a secret is in the server's log")
		}
	}
	w.row(t, &found, "SELECT count(*) FROM vault.credential WHERE kind = 'password' AND convert_from(hash, 'UTF8') LIKE '$argon2id$v=19$m=19456,t=2,p=1$%'")
	if found != 1 {
		t.Errorf("%d passwords are argon2id", found)
	}
}

func TestHeaders(t *testing.T) {
	w := newWorld(t, open)
	p := w.owner(t)
	for _, path := range []string{"/me", "/nothing", "//root/docs", "//root/openapi.json", "//root/healthz"} {
		h := p.do("GET", path, nil)
		for name, part := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			if !strings.Contains(h.header.Get(name), part) {
				t.Errorf("%s: %s is %q", path, name, h.header.Get(name))
			}
		}
		if csp := h.header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
			t.Errorf("%s: the policy is %q", path, csp)
		}
		if len(h.header.Get("X-Request-Id")) != 36 {
			t.Errorf("%s has request id %q", path, h.header.Get("X-Request-Id"))
		}
	}
	page := string(p.do("GET", "//root/docs", nil).want(http.StatusOK).body)
	if strings.Contains(page, "<script") || strings.Contains(page, "//cdn") || !strings.Contains(page, "/api/v1/runs/{run}/cancel") {
		t.Errorf("the page of the document is %.300s", page)
	}
}
