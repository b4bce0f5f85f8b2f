package metrics_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
)

// afar makes the connections of a listener come from another machine.
type afar struct {
	net.Listener
	peer string
}

type foreign struct {
	net.Conn
	peer net.Addr
}

func (c foreign) RemoteAddr() net.Addr { return c.peer }

func (l afar) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return foreign{c, &net.TCPAddr{IP: net.ParseIP(l.peer), Port: 40000}}, nil
}

// Peers of other machines get what a path gets that does not exist.
func TestForeignPeersGetNotFound(t *testing.T) {
	t.Parallel()
	for _, peer := range []string{"192.0.2.7", "10.0.0.1", "2001:db8::1", "::ffff:192.0.2.7"} {
		w := newWorld(t, false, func(l net.Listener) net.Listener { return afar{l, peer} })
		status, _, body := w.ask("GET", w.url+"/metrics")
		other, _, unknown := w.ask("GET", w.url+"/no-such-path")
		if status != http.StatusNotFound || status != other || problem(t, body) != problem(t, unknown) || strings.Contains(body, "cairn_") {
			t.Errorf("%s got %d %.200s", peer, status, body)
		}
	}
}

// So do requests that a proxy on this machine passes on, pages whose name leads here, and other methods.
func TestWhoIsOfThisMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil)
	for _, c := range []struct {
		method, name, value string
		status              int
	}{
		{"GET", "Host", "localhost:1", 200},
		{"GET", "Host", "[::1]:1", 200},
		{"HEAD", "Accept", "text/plain", 200},
		{"GET", "Host", "cairn.example", 404},
		{"GET", "Host", "localhost.example:8080", 404},
		{"GET", "X-Forwarded-For", "192.0.2.7", 404},
		{"GET", "X-Forwarded-For", "127.0.0.1", 404},
		{"GET", "Forwarded", "for=192.0.2.7", 404},
		{"GET", "Via", "1.1 proxy", 404},
		{"GET", "X-Real-IP", "127.0.0.1", 404},
		{"POST", "Accept", "text/plain", 404},
	} {
		if status, _, body := w.ask(c.method, w.url+"/metrics", c.name, c.value); status != c.status {
			t.Errorf("%s with %s: %s answered %d, want %d: %.100s", c.method, c.name, c.value, status, c.status, body)
		}
	}
}

// With an address of its own /metrics is there, whatever the name, and not beside the other routes.
func TestOwnAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil)
	if status, _, body := w.ask("GET", w.url+"/metrics"); status != http.StatusNotFound || problem(t, body) != "route_not_found" {
		t.Errorf("the main address answered %d: %.200s", status, body)
	}
	status, _, body := w.ask("GET", w.own+"/metrics", "Host", "cairn.example")
	if status != http.StatusOK {
		t.Fatalf("its own address answered %d: %.200s", status, body)
	}
	parse(t, body).want(t, 1, "cairn_database_reachable")
	for _, path := range []string{"/", "/healthz", "/api/v1/me"} {
		if status, _, _ := w.ask("GET", w.own+path); status != http.StatusNotFound {
			t.Errorf("%s answered %d on the address for metrics", path, status)
		}
	}
}
