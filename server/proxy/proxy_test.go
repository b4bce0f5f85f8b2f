package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"cairn/server/proxy"
)

var trusted = []string{"10.0.0.0/8", "127.0.0.1/32", "2001:db8:ffff::/48"}

// seen is what a request looks like behind the handler.
func seen(t *testing.T, networks []string, peer string, forwarded []string, schemes ...string) (address string, tls bool) {
	t.Helper()
	p, err := proxy.Parse(networks)
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": forwarded, "X-Forwarded-Proto": schemes}}
	p.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		address, tls = r.RemoteAddr, r.TLS != nil
	})).ServeHTTP(httptest.NewRecorder(), r)
	return address, tls
}

func TestWhoIsBelieved(t *testing.T) {
	for _, c := range []struct {
		why, peer string
		forwarded []string
		want      string
	}{
		{"a stranger says so", "192.0.2.9:5", []string{"198.51.100.1"}, "192.0.2.9:5"},
		{"a stranger names a proxy", "192.0.2.9:5", []string{"198.51.100.1, 10.0.0.1"}, "192.0.2.9:5"},
		{"the other loopback is not trusted", "[::1]:5", []string{"198.51.100.1"}, "[::1]:5"},
		{"no header", "10.0.0.1:5", nil, "10.0.0.1:5"},
		{"one hop", "10.0.0.1:5", []string{"198.51.100.1"}, "198.51.100.1:0"},
		{"several hops", "10.0.0.1:5", []string{"198.51.100.1, 10.2.2.2,127.0.0.1"}, "198.51.100.1:0"},
		{"several headers", "10.0.0.1:5", []string{"203.0.113.7", "198.51.100.1", "10.2.2.2"}, "198.51.100.1:0"},
		{"the client wrote the left", "10.0.0.1:5", []string{"127.0.0.1, 203.0.113.7, 198.51.100.1, 10.2.2.2"}, "198.51.100.1:0"},
		{"the client wrote garbage at the left", "10.0.0.1:5", []string{"<script>, , 198.51.100.1"}, "198.51.100.1:0"},
		{"all are trusted", "10.0.0.1:5", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3:0"},
		{"IPv6", "[2001:db8:ffff::1]:5", []string{"2001:db8:1::7, 2001:db8:ffff::2"}, "[2001:db8:1::7]:0"},
		{"IPv6 with a port", "10.0.0.1:5", []string{"[2001:db8:1::7]:4000"}, "[2001:db8:1::7]:0"},
		{"IPv4 with a port", "10.0.0.1:5", []string{"198.51.100.1:4000"}, "198.51.100.1:0"},
		{"IPv4 in IPv6 as peer", "[::ffff:10.0.0.1]:5", []string{"198.51.100.1"}, "198.51.100.1:0"},
		{"IPv4 in IPv6 as hop", "10.0.0.1:5", []string{"198.51.100.1, ::ffff:10.2.2.2"}, "198.51.100.1:0"},
		{"garbage", "10.0.0.1:5", []string{"unknown"}, "10.0.0.1:5"},
		{"garbage at the end", "10.0.0.1:5", []string{"198.51.100.1, _hidden"}, "10.0.0.1:5"},
		{"garbage between hops", "10.0.0.1:5", []string{"198.51.100.1, x, 10.2.2.2"}, "10.0.0.1:5"},
		{"an empty end", "10.0.0.1:5", []string{"198.51.100.1,"}, "10.0.0.1:5"},
		{"an empty header", "10.0.0.1:5", []string{""}, "10.0.0.1:5"},
		{"a zone", "10.0.0.1:5", []string{"fe80::1%eth0"}, "10.0.0.1:5"},
		{"a name", "10.0.0.1:5", []string{"localhost"}, "10.0.0.1:5"},
		{"no port in the peer's brackets", "@", []string{"198.51.100.1"}, "@"},
	} {
		if got, _ := seen(t, trusted, c.peer, c.forwarded); got != c.want {
			t.Errorf("%s: %s with %q is %s, want %s", c.why, c.peer, c.forwarded, got, c.want)
		}
		if got, _ := seen(t, nil, c.peer, c.forwarded); got != c.peer {
			t.Errorf("%s: without proxies %s with %q is %s", c.why, c.peer, c.forwarded, got)
		}
	}
}

func TestWhoseSchemeIsBelieved(t *testing.T) {
	for _, c := range []struct {
		peer    string
		schemes []string
		want    bool
	}{
		{"10.0.0.1:5", []string{"https"}, true},
		{"10.0.0.1:5", []string{"HTTPS"}, true},
		{"10.0.0.1:5", []string{"http"}, false},
		{"10.0.0.1:5", nil, false},
		{"10.0.0.1:5", []string{"https, http"}, false},
		{"10.0.0.1:5", []string{"https", "https"}, false},
		{"10.0.0.1:5", []string{"wss"}, false},
		{"192.0.2.9:5", []string{"https"}, false},
	} {
		if _, got := seen(t, trusted, c.peer, nil, c.schemes...); got != c.want {
			t.Errorf("%s with %q: TLS %v, want %v", c.peer, c.schemes, got, c.want)
		}
	}
}

func TestNetworksThatAreRefused(t *testing.T) {
	for _, text := range []string{"", "10.0.0.1", "10.0.0.0/33", "proxy.example", "0.0.0.0/0", "::/0", "::ffff:10.0.0.0/104", "fe80::1%eth0/64"} {
		if got, err := proxy.Parse([]string{"10.0.0.0/8", text}); err == nil {
			t.Errorf("%q was taken as %v", text, got)
		}
	}
}
