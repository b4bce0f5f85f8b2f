package api_test

import (
	"net/http"
	"strconv"
	"testing"

	"cairn/server/auth"
	"cairn/server/proxy"
)

func loopbackProxies(t *testing.T) proxy.Trusted {
	t.Helper()
	trusted, err := proxy.Parse([]string{"127.0.0.1/32"})
	if err != nil {
		t.Fatal(err)
	}
	return trusted
}

// TestLimitsCountTheClient: behind a trusted proxy each client has its own limit, and what it writes itself into the
// header changes nothing; without one nothing that anybody writes does.
func TestLimitsCountTheClient(t *testing.T) {
	tries := func(w *world, from func(i int) string) (answered int) {
		for i := range 8 {
			h := w.stranger(t).do("POST", "/login", map[string]any{"email": from(i) + "." + strconv.Itoa(i) + "@example.test", "password": "wrong horse battery"}, "X-Forwarded-For", from(i))
			if h.status != http.StatusTooManyRequests {
				h.problem(http.StatusUnauthorized, "login_refused")
				answered++
			}
		}
		return answered
	}
	one := auth.Limits{Account: 1e6, Address: 1e-6, Burst: 1} // four tries from one address
	named := func(i int) string { return "198.51.100." + strconv.Itoa(i) }
	forged := func(i int) string { return "198.51.100." + strconv.Itoa(i) + ", 203.0.113.7" }
	garbage := func(i int) string { return "198.51.100." + strconv.Itoa(i) + ", x" + strconv.Itoa(i) }
	for _, c := range []struct {
		what    string
		proxies proxy.Trusted
		from    func(int) string
		want    int
	}{
		{"many clients behind a proxy", loopbackProxies(t), named, 8},
		{"one client that writes others before itself", loopbackProxies(t), forged, 4},
		{"garbage from the proxy", loopbackProxies(t), garbage, 4},
		{"no proxy is trusted", nil, named, 4},
	} {
		if got := tries(newWorldBehind(t, one, c.proxies), c.from); got != c.want {
			t.Errorf("%s: %d of 8 attempts were looked at, want %d", c.what, got, c.want)
		}
	}
}

// TestCookieBehindProxies: only a trusted proxy's word makes a plain cookie a secure one, or a client a distant one.
func TestCookieBehindProxies(t *testing.T) {
	for _, c := range []struct {
		what    string
		proxies proxy.Trusted
		header  []string
		secure  bool
	}{
		{"no header", loopbackProxies(t), nil, false},
		{"TLS ended at the proxy", loopbackProxies(t), []string{"X-Forwarded-Proto", "https"}, true},
		{"no TLS at the proxy", loopbackProxies(t), []string{"X-Forwarded-Proto", "http"}, false},
		{"a client elsewhere", loopbackProxies(t), []string{"X-Forwarded-For", "198.51.100.1"}, true},
		{"a client that writes this machine before itself", loopbackProxies(t), []string{"X-Forwarded-For", "127.0.0.1, 198.51.100.1"}, true},
		{"malformed", loopbackProxies(t), []string{"X-Forwarded-Proto", "https, https", "X-Forwarded-For", "x"}, false},
		{"nobody is trusted", nil, []string{"X-Forwarded-Proto", "https", "X-Forwarded-For", "198.51.100.1"}, false},
	} {
		w := newWorldBehind(t, open, c.proxies)
		code, err := auth.NewCode(t.Context(), w.db, w.team.Account)
		if err != nil {
			t.Fatal(err)
		}
		p := w.stranger(t)
		h := p.do("POST", "/login", map[string]any{"email": email(w.team.Account), "code": code}, c.header...).want(http.StatusOK)
		cookie := h.cookies[0]
		name := map[bool]string{true: "__Host-cairn_session", false: "cairn_session"}[c.secure]
		if cookie.Secure != c.secure || cookie.Name != name {
			t.Errorf("%s: the cookie is %s, secure %v", c.what, cookie.Name, cookie.Secure)
		}
		p.cookie = cookie.Name + "=" + cookie.Value
		p.do("GET", "/me", nil, c.header...).want(http.StatusOK)
		strict := h.header.Get("Strict-Transport-Security") != ""
		if tls := c.secure && c.header[0] == "X-Forwarded-Proto"; strict != tls {
			t.Errorf("%s: Strict-Transport-Security is there: %v", c.what, strict)
		}
	}
}
