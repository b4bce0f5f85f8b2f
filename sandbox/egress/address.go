package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// special are the IPv4 ranges that are not public: RFC 6890 and its successors, and multicast.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
)

// Of IPv6 only global unicast is public, less what is in it for special use: everything that embeds an IPv4
// address (mapped, translated, 6to4, Teredo) leads where the list above forbids.
var (
	public6  = netip.MustParsePrefix("2000::/3")
	special6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)

func prefixes(list ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(list))
	for i, s := range list {
		all[i] = netip.MustParsePrefix(s)
	}
	return all
}

// forbidden gives the range that forbids an address; empty for a public one.
func forbidden(a netip.Addr) string {
	list := special6
	if a.Zone() != "" || a.Is4In6() {
		return "::ffff:0:0/96 or a zone"
	}
	if a.Is4() {
		list = special
	} else if !public6.Contains(a) {
		return "outside of " + public6.String()
	}
	if i := slices.IndexFunc(list, func(p netip.Prefix) bool { return p.Contains(a) }); i >= 0 {
		return list[i].String()
	}
	return ""
}

// own tells whether an address is one of this machine's: what listens there is not meant for a sandbox.
func own(a netip.Addr) (bool, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	for _, n := range addrs {
		if p, err := netip.ParsePrefix(n.String()); err == nil && p.Addr().Unmap().WithZone("") == a {
			return true, nil
		}
	}
	return false, nil
}

// refusal is a decision against a request: its reason, and what a person needs to know.
type refusal struct {
	reason, text string
}

func (r *refusal) Error() string { return r.reason + ": " + r.text }

func refuse(reason, format string, args ...any) *refusal {
	return &refusal{reason, fmt.Sprintf(format, args...)}
}

// names are resolved by the Go resolver: others take numbers in old notations for addresses.
var names = net.Resolver{PreferGo: true}

// resolve gives the addresses of a host, all of them public. One that is not refuses the host: a name that
// mixes both is made to be tried again until it leads inside.
func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	var addrs []netip.Addr
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = []netip.Addr{a}
	} else if addrs, err = names.LookupNetIP(ctx, "ip", host+"."); err != nil || len(addrs) == 0 {
		return nil, refuse(ReasonUnresolved, "%s leads to no address", host)
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap()
		if why := forbidden(addrs[i]); why != "" {
			return nil, refuse(ReasonAddress, "%s leads to an address in %s, which is never reached from a sandbox", host, why)
		}
		switch mine, err := own(addrs[i]); {
		case err != nil:
			return nil, refuse(ReasonAddress, "the worker's own addresses cannot be listed")
		case mine:
			return nil, refuse(ReasonAddress, "%s leads to the worker itself, which is never reached from a sandbox", host)
		}
	}
	return addrs, nil
}

// dial connects to the first address that answers. The address is judged once more as the kernel will see it.
func dial(ctx context.Context, addrs []netip.Addr, port int, limit time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: limit, Control: func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err == nil && forbidden(ap.Addr()) != "" {
			err = fmt.Errorf("address %s is not public", ap.Addr())
		}
		return err
	}}
	var last error
	for _, a := range addrs[:min(len(addrs), 4)] {
		c, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, uint16(port)).String())
		if err == nil {
			return c, nil
		}
		last = err
	}
	return nil, fmt.Errorf("connect: %w", last)
}

// isCredential tells whether a client could authenticate itself with a header.
func isCredential(header string) bool {
	low := strings.ToLower(header)
	for _, part := range []string{"authorization", "api-key", "apikey", "auth-token", "access-token", "private-token", "cookie"} {
		if strings.Contains(low, part) {
			return true
		}
	}
	return false
}
