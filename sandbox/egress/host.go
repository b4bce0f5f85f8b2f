package egress

import (
	"net/netip"
	"strconv"
	"strings"
)

// validName accepts a DNS name of at least two labels in lower case whose last label is no number: what looks
// like an address to one resolver and like a name to another is neither here.
func validName(name string) bool {
	labels := strings.Split(name, ".")
	if len(name) > 253 || len(labels) < 2 {
		return false
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
			return false
		}
		for _, c := range []byte(l) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	last := labels[len(labels)-1]
	return last[0] < '0' || last[0] > '9'
}

func validPattern(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String() == host && forbidden(a) == ""
	}
	return validName(strings.TrimPrefix(host, "*."))
}

// hostMatches tells whether a valid host falls under a pattern.
func hostMatches(pattern, host string) bool {
	if suffix, wild := strings.CutPrefix(pattern, "*"); wild {
		_, err := netip.ParseAddr(host)
		return err != nil && strings.HasSuffix(host, suffix)
	}
	return pattern == host
}

// authority divides host:port. The host comes in lower case; an address in its canonical form.
func authority(s string, defaultPort int) (host string, port int, ok bool) {
	host, port = s, defaultPort
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		n, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || n == 0 || s[i+1] == '0' || s[i+1] == '+' {
			return "", 0, false
		}
		host, port = s[:i], int(n)
	}
	if port == 0 {
		return "", 0, false
	}
	if bare, six := strings.CutPrefix(host, "["); six {
		bare, closed := strings.CutSuffix(bare, "]")
		a, err := netip.ParseAddr(bare)
		if !closed || err != nil || !a.Is6() || a.Zone() != "" {
			return "", 0, false
		}
		return a.Unmap().String(), port, true
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String(), port, a.Is4()
	}
	host = strings.ToLower(host)
	return host, port, validName(host)
}

// ambiguous paths are read differently by different servers, so that no rule about paths can hold for them.
func ambiguous(path string) bool {
	low := strings.ToLower(path)
	for _, s := range []string{"//", `\`, "%2e", "%2f", "%5c", "%00", "%25", ";"} {
		if strings.Contains(low, s) {
			return true
		}
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

func pathMatches(pattern, path string) bool {
	if prefix, wild := strings.CutSuffix(pattern, "*"); wild {
		return strings.HasPrefix(path, prefix)
	}
	return pattern == path
}
