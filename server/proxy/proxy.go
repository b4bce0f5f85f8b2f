// Package proxy is whom a request comes from when proxies stand in between: what they say in X-Forwarded-For and
// X-Forwarded-Proto is believed of those alone that the operator named, and of all others ignored.
//
//	peer not trusted --------------------------------> the peer
//	peer trusted --no, or a malformed, header --------> the peer
//	             --X-Forwarded-For, read from its end--> the first address that is not trusted itself
//
// It may import the standard library only.
package proxy

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Trusted are the networks of proxies that are believed. The zero value believes nobody.
type Trusted []netip.Prefix

// Parse reads networks in the form 10.0.0.0/8 or 2001:db8::/32. One of all addresses is refused: then anybody could
// name any address.
func Parse(texts []string) (Trusted, error) {
	var all Trusted
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no network: write it like 10.0.0.5/32 or 2001:db8::/64", text)
		}
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is an IPv4 network in the form of IPv6: write it like 10.0.0.5/32", text)
		}
		if p.Bits() == 0 {
			return nil, fmt.Errorf("%q is everybody: name the addresses of your proxies", text)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// Handler gives next each request as the caller sent it to the outermost trusted proxy: RemoteAddr is the caller's
// (with port 0), and TLS is set when it was used there, for all that ask for it later. The headers stay.
func (t Trusted) Handler(next http.Handler) http.Handler {
	if len(t) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peer, ok := address(r.RemoteAddr); ok && t.has(peer) {
			r = t.believe(r)
		}
		next.ServeHTTP(w, r)
	})
}

func (t Trusted) believe(r *http.Request) *http.Request {
	believed := *r
	if client, ok := t.client(r.Header.Values("X-Forwarded-For")); ok {
		believed.RemoteAddr = net.JoinHostPort(client.String(), "0")
	}
	if schemes := r.Header.Values("X-Forwarded-Proto"); len(schemes) == 1 {
		switch strings.ToLower(schemes[0]) {
		case "https":
			believed.TLS = &tls.ConnectionState{}
		case "http":
			believed.TLS = nil
		}
	}
	return &believed
}

// client is the last address that no trusted proxy has; when all have, the first. What is left of it was said by the
// client, and is not looked at.
func (t Trusted) client(headers []string) (client netip.Addr, ok bool) {
	hops := strings.Split(strings.Join(headers, ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		if client, ok = address(strings.TrimSpace(hops[i])); !ok {
			return netip.Addr{}, false
		}
		if !t.has(client) {
			break
		}
	}
	return client, ok
}

func (t Trusted) has(a netip.Addr) bool {
	for _, p := range t {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// address reads an address with or without a port. One with a zone means something on one machine only.
func address(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		with, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		a = with.Addr()
	}
	return a.Unmap(), a.Zone() == ""
}
