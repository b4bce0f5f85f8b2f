package auth

import (
	"net"
	"net/http"
)

// The names of the cookie. A browser takes one with the prefix __Host- only over TLS, from this very host and for
// all its paths, so that no other host of the domain can plant one. Plain HTTP on the own machine cannot have it.
const (
	cookieName  = "__Host-cairn_session"
	cookiePlain = "cairn_session"
)

// cookieLife is as long as browsers allow, in seconds: the vault decides when a session ends, which slides.
const cookieLife = 400 * 24 * 60 * 60

// plainLoopback reports whether a request came over plain HTTP from this machine, for a name of this machine.
// Behind a proxy that ends TLS on the same machine the name is another one, or server/proxy has set TLS.
func plainLoopback(r *http.Request) bool {
	if r.TLS != nil {
		return false
	}
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && loopback(peer) && loopback(hostOf(r))
}

func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func name(r *http.Request) string {
	if plainLoopback(r) {
		return cookiePlain
	}
	return cookieName
}

// SetCookie is the cookie that gives a browser the session's token.
func SetCookie(r *http.Request, token string) *http.Cookie {
	return &http.Cookie{
		Name: name(r), Value: token, Path: "/", MaxAge: cookieLife,
		HttpOnly: true, Secure: !plainLoopback(r), SameSite: http.SameSiteLaxMode,
	}
}

// ClearCookie is the cookie that takes it away.
func ClearCookie(r *http.Request) *http.Cookie {
	c := SetCookie(r, "")
	c.MaxAge = -1
	return c
}

// readCookie refuses a request that carries several: one of them was planted.
func readCookie(r *http.Request) string {
	cookies := r.CookiesNamed(name(r))
	if len(cookies) != 1 {
		return ""
	}
	return cookies[0].Value
}
