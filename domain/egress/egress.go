// Package egress is what an agent may reach from inside its sandbox, as people say it: a tier, and rules of the
// tier list. A space can bound what its agents ask for. What follows from both, and from the operator's ceiling,
// is worked out by the worker that runs them (package sandbox/egress, of the same shape), since it enforces it.
//
// It may import the standard library, domain/check and domain/fault.
package egress

import (
	"fmt"
	"slices"
	"strings"

	"cairn/domain/check"
	"cairn/domain/fault"
)

// The tiers, from nothing to most.
const (
	None       = "none"
	Registries = "registries" // package registries, GET and HEAD
	List       = "list"       // what the rules say
	Open       = "open"       // every public address
)

// Tiers returns all tiers, lowest first.
func Tiers() []string { return []string{None, Registries, List, Open} }

// Policy is a tier and, in tier list, its rules.
type Policy struct {
	Tier  string `json:"tier" enum:"none,registries,list,open"`                                                           // "none", "registries", "list" or "open"
	Rules []Rule `json:"rules,omitzero" maxItems:"200" doc:"Of tier list, which has at least one; the others have none."` // of tier list, and of it alone
}

// Rule allows requests to a host.
type Rule struct {
	Host    string   `json:"host" maxLength:"255" doc:"A name in lower case, *.name for all below it, or a public IP address."` // a name, *.name for all below it, or a public IP address
	Ports   []int    `json:"ports,omitzero" maxItems:"64" doc:"443 unless given, with plain 80."`                               // absent: 443, with plain 80
	Methods []string `json:"methods,omitzero" maxItems:"64" doc:"All but CONNECT and TRACE unless given."`                      // absent: all but CONNECT and TRACE
	Paths   []string `json:"paths,omitzero" maxItems:"64" doc:"/exact or /prefix/*; all unless given."`                         // /exact or /prefix/*; absent: all
	Tunnel  bool     `json:"tunnel,omitzero" doc:"Pass TLS through: method and path stay unknown."`                             // TLS is passed through: method and path stay unknown
	Plain   bool     `json:"plain,omitzero" doc:"http:// without TLS."`                                                         // http:// without TLS
}

const (
	maxRules = 200
	maxParts = 64
)

// Check refuses a policy that no worker could enforce. Null is no policy.
func (p *Policy) Check(field string) error {
	if p == nil {
		return nil
	}
	if err := check.OneOf(field+".tier", p.Tier, Tiers()...); err != nil {
		return err
	}
	if (p.Tier == List) != (len(p.Rules) > 0) || len(p.Rules) > maxRules {
		return fault.Field(field+".rules", "%d rules in tier %s: tier list takes 1 to %d, the others none", len(p.Rules), p.Tier, maxRules)
	}
	for i, r := range p.Rules {
		if err := r.check(fmt.Sprintf("%s.rules[%d]", field, i)); err != nil {
			return err
		}
	}
	return nil
}

func (r Rule) check(at string) error {
	if err := check.First(check.Line(at+".host", r.Host, 1, 255), checkHost(at+".host", r.Host)); err != nil {
		return err
	}
	if len(r.Ports) > maxParts || len(r.Methods) > maxParts || len(r.Paths) > maxParts {
		return fault.Field(at, "more than %d ports, methods or paths: make another rule", maxParts)
	}
	for i, port := range r.Ports {
		if err := check.Range(fmt.Sprintf("%s.ports[%d]", at, i), int64(port), 1, 65535); err != nil {
			return err
		}
	}
	for i, m := range r.Methods {
		upper := !strings.ContainsFunc(m, func(c rune) bool { return (c < 'A' || c > 'Z') && c != '-' })
		if m == "" || len(m) > 32 || !upper || m == "TRACE" || m == "CONNECT" {
			return fault.Field(fmt.Sprintf("%s.methods[%d]", at, i), "%.40q: want a method in capitals; CONNECT and TRACE are always refused", m)
		}
	}
	for i, path := range r.Paths {
		if err := checkPath(fmt.Sprintf("%s.paths[%d]", at, i), path); err != nil {
			return err
		}
	}
	if r.Tunnel && (r.Plain || len(r.Methods)+len(r.Paths) > 0) {
		return fault.Field(at+".tunnel", "a tunnel shows neither method nor path and is never plain: leave plain, methods and paths out")
	}
	return nil
}

// checkHost refuses what is neither a name nor an address; whether an address is public, the worker knows.
func checkHost(field, host string) error {
	name := strings.TrimPrefix(host, "*.")
	good := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:", c)
	}
	labels := strings.Split(name, ".")
	bad := strings.ContainsFunc(name, func(c rune) bool { return !good(c) }) || len(labels) < 2 && !strings.Contains(name, ":")
	bad = bad || slices.ContainsFunc(labels, func(l string) bool { return l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' })
	if bad {
		return fault.Field(field, "%.80q: want a lower-case name such as api.example.com, *.example.com, or a public IP address", host)
	}
	return nil
}

func checkPath(field, path string) error {
	plain := strings.TrimSuffix(path, "*")
	odd := func(c rune) bool { return c <= 0x20 || c > 0x7e || strings.ContainsRune(`*?#\;%`, c) }
	dots := slices.ContainsFunc(strings.Split(plain, "/"), func(part string) bool { return part == "." || part == ".." })
	if !strings.HasPrefix(path, "/") || len(path) > 1024 || strings.ContainsFunc(plain, odd) || dots || strings.Contains(plain, "//") || plain != path && !strings.HasSuffix(plain, "/") {
		return fault.Field(field, "%.80q: want /exact or /prefix/* in printable ASCII, without dots, empty parts, escapes and a query", path)
	}
	return nil
}
