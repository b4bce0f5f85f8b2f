package metrics

import (
	"net"
	"net/http"
)

// forwarding are headers that proxies add: such a request comes from elsewhere, whoever its peer is.
var forwarding = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// Local answers those who ask from this machine. To others, next says what it says of a path that does not exist.
func (m *Meter) Local(next http.Handler) http.Handler {
	answer := m.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if local(r) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			answer.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// local reports whether the peer is this machine and asked for it by such a name: a page in a browser of this
// machine, whose own name leads here, did not.
func local(r *http.Request) bool {
	for _, name := range forwarding {
		if len(r.Header.Values(name)) > 0 {
			return false
		}
	}
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && loopback(peer) && loopback(withoutPort(r.Host))
}

func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
