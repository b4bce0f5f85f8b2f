package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Tier is how far a sandbox may reach.
type Tier string

// The tiers, from nothing to most. Registries and list intercept TLS; open does not, except where it injects.
const (
	None       Tier = "none"       // no listener at all
	Registries Tier = "registries" // package registries, GET and HEAD
	List       Tier = "list"       // what the rules say
	Open       Tier = "open"       // every public address
)

// Tiers gives all tiers, lowest first.
func Tiers() []Tier { return []Tier{None, Registries, List, Open} }

func (t Tier) rank() int { return slices.Index(Tiers(), t) }

// Policy is what a sandbox may reach. The zero value is no policy: ask for None by name.
type Policy struct {
	Tier       Tier        `json:"tier"`
	Rules      []Rule      `json:"rules,omitempty"`      // of tier list, and of it alone
	Injections []Injection `json:"injections,omitempty"` // credentials that are added outside
}

// Rule allows requests to a host.
type Rule struct {
	Host    string   `json:"host"`              // name, *.name (below it, not itself), or IP address
	Ports   []int    `json:"ports,omitempty"`   // empty: 443, with plain 80
	Methods []string `json:"methods,omitempty"` // empty: all but CONNECT and TRACE
	Paths   []string `json:"paths,omitempty"`   // exact, or a prefix that ends in /*; empty: all
	Tunnel  bool     `json:"tunnel,omitempty"`  // TLS is passed through: SNI is checked, method and path are unknown
	Plain   bool     `json:"plain,omitempty"`   // http without TLS; never injected
}

// Injection adds a secret to requests, outside of the sandbox. What the client sent for authentication is
// removed from every request to that host and port.
type Injection struct {
	Host    string   `json:"host"`              // a name, no pattern
	Port    int      `json:"port,omitempty"`    // 0: 443
	Methods []string `json:"methods,omitempty"` // empty: all that the rules allow
	Path    string   `json:"path,omitempty"`    // as in Rule; empty: all
	Header  string   `json:"header"`            // such as Authorization
	Prefix  string   `json:"prefix,omitempty"`  // before the secret, such as "Bearer "
	Basic   string   `json:"basic,omitempty"`   // user name: the secret is its password in Basic authentication
	Secret  string   `json:"secret"`            // name of the secret, not its value
}

// PolicyError is a rule that cannot be. Field is its place, such as rules[2].host.
type PolicyError struct {
	Field, Message string
}

func (e *PolicyError) Error() string { return "egress " + e.Field + ": " + e.Message }

func bad(field, format string, args ...any) error {
	return &PolicyError{Field: field, Message: fmt.Sprintf(format, args...)}
}

// What a policy may hold at most.
const (
	MaxRules = 200
	maxParts = 64 // ports, methods or paths of a rule
	maxPath  = 1024
)

// Check refuses what cannot be enforced and names its place.
func (p Policy) Check() error { return p.check(MaxRules) }

func (p Policy) check(most int) error {
	if p.Tier.rank() < 0 {
		return bad("tier", "%.40q: want one of %v", p.Tier, Tiers())
	}
	if (p.Tier == List) != (len(p.Rules) > 0) {
		return bad("rules", "%d rules in tier %s: tier list needs at least one, the others have none", len(p.Rules), p.Tier)
	}
	if len(p.Rules) > most || len(p.Injections) > most {
		return bad("rules", "%d rules and %d injections, the limit is %d each", len(p.Rules), len(p.Injections), most)
	}
	for i, r := range p.Rules {
		if err := r.check(fmt.Sprintf("rules[%d]", i)); err != nil {
			return err
		}
	}
	c := compile(p)
	for i, j := range p.Injections {
		if err := j.check(fmt.Sprintf("injections[%d]", i), c); err != nil {
			return err
		}
	}
	return nil
}

func (r Rule) check(at string) error {
	if !validPattern(r.Host) {
		return bad(at+".host", "%.80q: want a lower-case name such as api.example.com, *.example.com, or a public IP address", r.Host)
	}
	if len(r.Ports) > maxParts || len(r.Methods) > maxParts || len(r.Paths) > maxParts {
		return bad(at, "more than %d ports, methods or paths: make another rule", maxParts)
	}
	for i, port := range r.Ports {
		if port < 1 || port > 65535 {
			return bad(fmt.Sprintf("%s.ports[%d]", at, i), "%d: want 1 to 65535", port)
		}
	}
	if err := checkMethods(at+".methods", r.Methods); err != nil {
		return err
	}
	for i, path := range r.Paths {
		if err := checkPath(fmt.Sprintf("%s.paths[%d]", at, i), path); err != nil {
			return err
		}
	}
	if r.Tunnel && (r.Plain || len(r.Methods)+len(r.Paths) > 0) {
		return bad(at+".tunnel", "a tunnel shows neither method nor path and is never plain: leave plain, methods and paths out")
	}
	return nil
}

func checkMethods(field string, methods []string) error {
	for i, m := range methods {
		if m == "" || len(m) > 32 || strings.ContainsFunc(m, func(c rune) bool { return (c < 'A' || c > 'Z') && c != '-' }) {
			return bad(fmt.Sprintf("%s[%d]", field, i), "%.40q: want a method in capitals, such as GET", m)
		}
		if m == "TRACE" || m == "CONNECT" {
			return bad(fmt.Sprintf("%s[%d]", field, i), "%s is always refused", m)
		}
	}
	return nil
}

func checkPath(field, path string) error {
	plain := strings.TrimSuffix(path, "*")
	switch {
	case !strings.HasPrefix(path, "/") || len(path) > maxPath || strings.ContainsAny(plain, "*?# ") || strings.ContainsFunc(plain, func(c rune) bool { return c < 0x21 || c > 0x7e }):
		return bad(field, "%.80q: want /exact or /prefix/* in printable ASCII, without a query", path)
	case plain != path && !strings.HasSuffix(plain, "/"):
		return bad(field, "%.80q: a prefix ends at a folder, as in /v1/*", path)
	case ambiguous(plain):
		return bad(field, "%.80q: dots, empty parts and encoded separators mean different things to different servers", path)
	}
	return nil
}

func (j Injection) check(at string, c *compiled) error {
	if _, err := netip.ParseAddr(j.Host); err == nil || !validName(j.Host) {
		return bad(at+".host", "%.80q: want one name, without a pattern", j.Host)
	}
	if j.Port < 0 || j.Port > 65535 {
		return bad(at+".port", "%d: want 1 to 65535", j.Port)
	}
	if err := checkMethods(at+".methods", j.Methods); err != nil {
		return err
	}
	if j.Path != "" {
		if err := checkPath(at+".path", j.Path); err != nil {
			return err
		}
	}
	if !validHeader(j.Header) {
		return bad(at+".header", "%.80q: want the name of a header that carries credentials, such as Authorization", j.Header)
	}
	if strings.ContainsFunc(j.Prefix+j.Basic, func(c rune) bool { return c < 0x20 || c > 0x7e }) || strings.Contains(j.Basic, ":") || j.Prefix != "" && j.Basic != "" {
		return bad(at+".prefix", "prefix or basic, in printable ASCII, the latter without a colon")
	}
	if j.Secret == "" || len(j.Secret) > 128 {
		return bad(at+".secret", "%.40q: want the name of a secret, 1 to 128 bytes", j.Secret)
	}
	if m, _, _ := c.connect(j.Host, j.port()); m != intercept {
		return bad(at+".host", "%s:%d is not reached by a rule that intercepts TLS: add one, without tunnel and plain", j.Host, j.port())
	}
	return nil
}

func (j Injection) port() int {
	if j.Port == 0 {
		return 443
	}
	return j.Port
}

// framing are headers that say how a message ends or where it goes.
var framing = []string{
	"accept-encoding", "connection", "content-length", "content-type", "expect", "host", "keep-alive", "range", "te", "trailer", "transfer-encoding", "upgrade",
}

func validHeader(name string) bool {
	low := strings.ToLower(name)
	token := func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z')
	}
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(low, token) && !slices.Contains(framing, low) && !strings.HasPrefix(low, "proxy-")
}
