package egress

import (
	"net/netip"
	"slices"
	"strings"
)

// mode is what happens to a connection that a client asks for.
type mode int

const (
	refused   mode = iota
	intercept      // TLS ends here, each request is judged
	tunnel         // the ClientHello is judged, then passed through
	raw            // tier open: passed through
)

// Reasons of a refusal. They are part of the contract: only added to, never renamed.
const (
	ReasonNoRule          = "no_rule"           // no rule names this host and port
	ReasonMethod          = "method"            // the rules for the host do not have this method
	ReasonPath            = "path"              // nor this path
	ReasonAmbiguousPath   = "ambiguous_path"    // a rule about paths cannot be kept for it
	ReasonPlain           = "plain_http"        // http without TLS, and no rule says plain
	ReasonLiteral         = "ip_literal"        // an address in place of a name, and no rule lists it
	ReasonInvalidHost     = "invalid_host"      // neither a name nor an address
	ReasonAddress         = "address"           // the name leads to a private, local or special address
	ReasonUnresolved      = "unresolved"        // the name leads nowhere
	ReasonNotTLS          = "not_tls"           // no TLS ClientHello, or none in time
	ReasonHello           = "malformed_hello"   // a ClientHello that is not well-formed
	ReasonSNIMissing      = "sni_missing"       // a ClientHello without a name
	ReasonSNIMismatch     = "sni_mismatch"      // a ClientHello with another name
	ReasonECH             = "ech"               // an encrypted ClientHello: its true name is hidden
	ReasonHostMismatch    = "host_mismatch"     // a request for another host than its connection
	ReasonForbiddenMethod = "method_forbidden"  // TRACE, or CONNECT inside of a connection
	ReasonUpgrade         = "upgrade"           // a change of protocol: what follows could not be judged
	ReasonBody            = "body"              // a body where the rules only let read
	ReasonEncoded         = "encoded_response"  // a compressed answer, in which a secret could not be found
	ReasonRequest         = "malformed_request" // a request that is not well-formed
)

// compiled is a policy that was checked, ready to be asked.
type compiled struct {
	tier       Tier
	rules      []Rule
	injections []Injection
}

func compile(p Policy) *compiled {
	c := &compiled{tier: p.Tier, rules: p.Rules, injections: p.Injections}
	if p.Tier == Registries {
		c.rules = registryRules()
	}
	return c
}

func (r Rule) ports() []int {
	switch {
	case len(r.Ports) > 0:
		return r.Ports
	case r.Plain:
		return []int{80}
	}
	return []int{443}
}

func (r Rule) reaches(host string, port int, plain bool) bool {
	return r.Plain == plain && slices.Contains(r.ports(), port) && hostMatches(r.Host, host)
}

// readsOnly tells that a rule is for fetching: a body would carry something out.
func (r Rule) readsOnly() bool {
	return len(r.Methods) > 0 && !slices.ContainsFunc(r.Methods, func(m string) bool { return m != "GET" && m != "HEAD" })
}

func (c *compiled) name(r Rule) string { return string(c.tier) + "/" + r.Host }

// connect judges a connection to a host, before anything of a request is known. A host is passed through only
// when every rule for it says so.
func (c *compiled) connect(host string, port int) (m mode, rule, reason string) {
	if c.tier == Open {
		if c.injects(host, port) {
			return intercept, "open", ""
		}
		return raw, "open", ""
	}
	for _, r := range c.rules {
		if !r.reaches(host, port, false) {
			continue
		}
		if !r.Tunnel {
			return intercept, c.name(r), ""
		}
		m, rule = tunnel, c.name(r)
	}
	if m == refused {
		return refused, "", noRule(host)
	}
	return m, rule, ""
}

func noRule(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ReasonLiteral
	}
	return ReasonNoRule
}

// request judges one request. The reason of a refusal is that of the rule which came nearest.
func (c *compiled) request(host string, port int, plain bool, method, path string) (rule, reason string, read bool) {
	if method == "TRACE" || method == "CONNECT" {
		return "", ReasonForbiddenMethod, false
	}
	if c.tier == Open {
		return "open", "", false
	}
	reason = noRule(host)
	if plain && reason == ReasonNoRule {
		reason = ReasonPlain
	}
	for _, r := range c.rules {
		if !r.reaches(host, port, plain) {
			continue
		}
		why := r.judge(method, path)
		if why == "" {
			if rule == "" || read {
				rule, read = c.name(r), r.readsOnly()
			}
			continue
		}
		if reason == ReasonNoRule || reason == ReasonPlain || reason == ReasonLiteral || why != ReasonMethod {
			reason = why
		}
	}
	if rule != "" {
		return rule, "", read
	}
	return "", reason, false
}

func (r Rule) judge(method, path string) string {
	if len(r.Methods) > 0 && !slices.Contains(r.Methods, method) {
		return ReasonMethod
	}
	if len(r.Paths) == 0 {
		return ""
	}
	if ambiguous(path) {
		return ReasonAmbiguousPath
	}
	if !slices.ContainsFunc(r.Paths, func(p string) bool { return pathMatches(p, path) }) {
		return ReasonPath
	}
	return ""
}

// injects tells whether any secret goes to this host and port: then all of its answers are searched.
func (c *compiled) injects(host string, port int) bool {
	return slices.ContainsFunc(c.injections, func(j Injection) bool { return j.Host == host && j.port() == port })
}

// injection gives the first one for a request. An ambiguous path gets none that is about paths.
func (c *compiled) injection(host string, port int, method, path string) (Injection, bool) {
	for _, j := range c.injections {
		if j.Host != host || j.port() != port || len(j.Methods) > 0 && !slices.Contains(j.Methods, method) {
			continue
		}
		if j.Path == "" || !ambiguous(path) && pathMatches(j.Path, path) {
			return j, true
		}
	}
	return Injection{}, false
}

// Hosts lists the hosts that the policy names, for a person; nil in tier open, where it is everything.
func (p Policy) Hosts() []string {
	if p.Tier == Open {
		return nil
	}
	hosts := []string{}
	for _, r := range compile(p).rules {
		if !slices.Contains(hosts, r.Host) {
			hosts = append(hosts, r.Host)
		}
	}
	slices.SortFunc(hosts, strings.Compare)
	return hosts
}
