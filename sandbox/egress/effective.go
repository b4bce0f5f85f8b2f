package egress

import (
	"fmt"
	"slices"
	"strings"
)

// ConflictError says that a sandbox asks for more than its surroundings allow.
type ConflictError struct {
	Asked string // what is asked for: a tier, a rule or an injection
	By    string // who does not allow it: "space" or "ceiling"
	Fix   string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("egress %s is not allowed by the %s: %s", e.Asked, map[string]string{"space": "space's policy", "ceiling": "ceiling of this worker"}[e.By], e.Fix)
}

// maxEffective bounds the product of two rule lists.
const maxEffective = 1000

// Effective gives what asked, space and ceiling allow together. Nil is unset: without asked the space's policy
// applies, without both nothing is reachable. What is narrower in the space narrows a rule; a rule of which
// nothing is left, and a tier above the ceiling, is a *ConflictError and never dropped in silence.
func Effective(asked, space *Policy, ceiling Tier) (Policy, error) {
	for _, p := range []*Policy{asked, space} {
		if p != nil {
			if err := p.Check(); err != nil {
				return Policy{}, err
			}
		}
	}
	if ceiling.rank() < 0 {
		return Policy{}, bad("ceiling", "%.40q: want one of %v", ceiling, Tiers())
	}
	p, tier := Policy{Tier: None}, None
	switch {
	case asked != nil && space != nil:
		var err error
		if p, err = within(*asked, *space); err != nil {
			return Policy{}, err
		}
		tier = Tiers()[min(asked.Tier.rank(), space.Tier.rank())] // what is left lies within both
	case asked != nil:
		p, tier = *asked, asked.Tier
	case space != nil:
		p, tier = *space, space.Tier
	}
	if tier.rank() > ceiling.rank() {
		return Policy{}, &ConflictError{Asked: "tier " + string(tier), By: "ceiling", Fix: fmt.Sprintf("ask for tier %s at most, or start the worker with --egress-ceiling %s", ceiling, tier)}
	}
	return p, nil
}

func within(asked, space Policy) (Policy, error) {
	if asked.Tier == None {
		return asked, nil
	}
	if space.Tier == None {
		return Policy{}, &ConflictError{Asked: "tier " + string(asked.Tier), By: "space", Fix: "the space allows none; change its policy, or ask for none"}
	}
	p := Policy{Tier: List, Injections: asked.Injections}
	switch {
	case space.Tier == Open || asked.Tier == space.Tier && asked.Tier == Registries:
		p = asked
	case asked.Tier == Open:
		p.Tier, p.Rules = space.Tier, space.Rules
	default:
		var err error
		if p.Rules, err = product(compile(asked), compile(space)); err != nil {
			return Policy{}, err
		}
	}
	c := compile(p)
	for _, j := range p.Injections {
		if m, _, _ := c.connect(j.Host, j.port()); m != intercept {
			return Policy{}, &ConflictError{Asked: fmt.Sprintf("injection for %s:%d", j.Host, j.port()), By: "space", Fix: "add a rule that intercepts this host to the space's policy, or drop the injection"}
		}
	}
	return p, nil
}

// product keeps of each asked rule what a rule of the space allows too. Registries that a space does not list
// are no conflict as long as one is left: nobody asked for each of them by name.
func product(asked, space *compiled) ([]Rule, error) {
	var all []Rule
	for _, a := range asked.rules {
		before := len(all)
		for _, b := range space.rules {
			if r, ok := meet(a, b); ok {
				all = append(all, r)
			}
		}
		if len(all) == before && asked.tier != Registries {
			return nil, &ConflictError{Asked: "rule for " + a.String(), By: "space", Fix: "no rule of the space's policy allows any of it; add one, or drop this one"}
		}
	}
	if len(all) == 0 {
		return nil, &ConflictError{Asked: "tier " + string(asked.tier), By: "space", Fix: "its policy lists none of these hosts"}
	}
	if len(all) > maxEffective {
		return nil, bad("rules", "agent and space together make %d rules, the limit is %d: overlap less", len(all), maxEffective)
	}
	return all, nil
}

// String names a rule for a person.
func (r Rule) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %v %s %s", r.Host, r.ports(), strings.Join(r.Methods, ","), strings.Join(r.Paths, ",")))
}

// meet gives the rule that allows what both do; false when there is nothing.
func meet(a, b Rule) (Rule, bool) {
	r := Rule{Plain: a.Plain, Tunnel: a.Tunnel && b.Tunnel}
	switch {
	case a.Plain != b.Plain:
		return r, false
	case a.Host == b.Host || hostMatches(b.Host, strings.TrimPrefix(a.Host, "*.")) && strings.HasPrefix(b.Host, "*"):
		r.Host = a.Host
	case hostMatches(a.Host, strings.TrimPrefix(b.Host, "*.")) && strings.HasPrefix(a.Host, "*"):
		r.Host = b.Host
	default:
		return r, false
	}
	for _, port := range a.ports() {
		if slices.Contains(b.ports(), port) {
			r.Ports = append(r.Ports, port)
		}
	}
	var some bool
	if r.Methods, some = both(a.Methods, b.Methods, sameMethod); !some {
		return r, false
	}
	if r.Paths, some = both(a.Paths, b.Paths, narrower); !some {
		return r, false
	}
	return r, len(r.Ports) > 0
}

// both meets two lists of which an empty one means everything.
func both(a, b []string, meet func(a, b string) (string, bool)) ([]string, bool) {
	if len(a) == 0 || len(b) == 0 {
		return append(slices.Clone(a), b...), true
	}
	var all []string
	for _, x := range a {
		for _, y := range b {
			if z, ok := meet(x, y); ok && !slices.Contains(all, z) {
				all = append(all, z)
			}
		}
	}
	return all, len(all) > 0
}

func sameMethod(a, b string) (string, bool) { return a, a == b }

func narrower(a, b string) (string, bool) {
	switch {
	case a == b || pathMatches(b, strings.TrimSuffix(a, "*")) && strings.HasSuffix(b, "*"):
		return a, true
	case pathMatches(a, strings.TrimSuffix(b, "*")) && strings.HasSuffix(a, "*"):
		return b, true
	}
	return "", false
}
