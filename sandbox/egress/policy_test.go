package egress

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPolicyIsChecked(t *testing.T) {
	ok := Rule{Host: "api.example.com"}
	for field, p := range map[string]Policy{
		"tier":                 {Tier: "all"},
		"rules":                {Tier: List},
		"rules ":               {Tier: Open, Rules: []Rule{ok}},
		"rules[1].host":        {Tier: List, Rules: []Rule{ok, {Host: "API.example.com"}}},
		"rules[0].host":        {Tier: List, Rules: []Rule{{Host: "localhost"}}},
		"rules[0].host ":       {Tier: List, Rules: []Rule{{Host: "*.*.example.com"}}},
		"rules[0].host  ":      {Tier: List, Rules: []Rule{{Host: "10.0.0.1"}}},
		"rules[0].host   ":     {Tier: List, Rules: []Rule{{Host: "::ffff:8.8.8.8"}}},
		"rules[0].host    ":    {Tier: List, Rules: []Rule{{Host: "0x7f.1"}}},
		"rules[0].ports[0]":    {Tier: List, Rules: []Rule{{Host: "a.b", Ports: []int{0}}}},
		"rules[0].methods[1]":  {Tier: List, Rules: []Rule{{Host: "a.b", Methods: []string{"GET", "TRACE"}}}},
		"rules[0].paths[0]":    {Tier: List, Rules: []Rule{{Host: "a.b", Paths: []string{"/a/../b"}}}},
		"rules[0].paths[0] ":   {Tier: List, Rules: []Rule{{Host: "a.b", Paths: []string{"/v1*"}}}},
		"rules[0].tunnel":      {Tier: List, Rules: []Rule{{Host: "a.b", Tunnel: true, Paths: []string{"/x"}}}},
		"injections[0].host":   {Tier: List, Rules: []Rule{{Host: "a.b", Tunnel: true}}, Injections: []Injection{{Host: "a.b", Header: "Authorization", Secret: "s"}}},
		"injections[0].host ":  {Tier: None, Injections: []Injection{{Host: "a.b", Header: "Authorization", Secret: "s"}}},
		"injections[0].header": {Tier: Open, Injections: []Injection{{Host: "a.b", Header: "Host", Secret: "s"}}},
	} {
		err := p.Check()
		var e *PolicyError
		if !errors.As(err, &e) || e.Field != strings.TrimSpace(field) {
			t.Errorf("%q: got %v", field, err)
		}
	}
	for _, p := range []Policy{
		{Tier: None},
		{Tier: Registries},
		{Tier: Open},
		{Tier: List, Rules: []Rule{ok, {Host: "*.x.org", Tunnel: true}, {Host: "2606:4700::1111", Ports: []int{853}}}},
		{Tier: List, Rules: []Rule{ok}, Injections: []Injection{{Host: "api.example.com", Path: "/v1/*", Header: "Authorization", Prefix: "Bearer ", Secret: "key"}}},
		{Tier: Open, Injections: []Injection{{Host: "a.b", Header: "x-api-key", Secret: "s"}}},
	} {
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	}
	if err := compile(Policy{Tier: Registries}); !slices.IsSortedFunc(err.rules, func(a, b Rule) int { return 0 }) || len(err.rules) == 0 {
		t.Error("no registries")
	}
	for _, r := range registryRules() {
		if err := r.check("registry " + r.Host); err != nil {
			t.Error(err)
		}
	}
}

var (
	someHosts   = []string{"a.x.org", "b.x.org", "x.org", "c.b.x.org", "z.y.net", "8.8.8.8"}
	somePattern = append([]string{"*.x.org", "*.b.x.org", "*.y.net"}, someHosts...)
	someMethods = []string{"GET", "HEAD", "POST"}
	somePaths   = []string{"/", "/v1/a", "/v1/b/c", "/v1/", "/v2/../v1/a", "/v1/%2e%2e/x", "/v3"}
	somePrefix  = []string{"/*", "/v1/*", "/v1/b/*", "/v1/a", "/v3", "/v1/b/c"}
)

func drawRule(t *rapid.T) Rule {
	list := func(from []string, name string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, 2, rapid.ID[string]).Draw(t, name)
	}
	r := Rule{Host: rapid.SampledFrom(somePattern).Draw(t, "host"), Ports: rapid.SliceOfNDistinct(rapid.SampledFrom([]int{80, 443, 8443}), 0, 2, rapid.ID[int]).Draw(t, "ports")}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		r.Tunnel = true
		return r
	case 1:
		r.Plain = true
	}
	r.Methods, r.Paths = list(someMethods, "methods"), list(somePrefix, "paths")
	return r
}

func drawPolicy(t *rapid.T, name string) Policy {
	p := Policy{Tier: rapid.SampledFrom([]Tier{List, List, List, None, Registries, Open}).Draw(t, name)}
	if p.Tier == List {
		p.Rules = rapid.SliceOfN(rapid.Custom(drawRule), 1, 4).Draw(t, name+" rules")
	}
	return p
}

// TestEffectiveIsTheIntersection: what two policies allow together is what each of them allows, whoever asks.
func TestEffectiveIsTheIntersection(t *testing.T) {
	hosts := append(slices.Clone(someHosts), "pypi.org")
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPolicy(t, "asked"), drawPolicy(t, "space")
		both, err := Effective(&a, &b, Open)
		conflict := (*ConflictError)(nil)
		if err != nil && !errors.As(err, &conflict) {
			t.Fatal(err)
		}
		if err != nil {
			if conflict.By != "space" || conflict.Asked == "" || conflict.Fix == "" {
				t.Fatalf("%+v", conflict)
			}
			return
		}
		if err := both.check(maxEffective); err != nil {
			t.Fatalf("%+v: %v", both, err)
		}
		for _, host := range hosts {
			for _, port := range []int{80, 443, 8443} {
				for _, plain := range []bool{false, true} {
					for _, method := range append([]string{"TRACE"}, someMethods...) {
						for _, path := range somePaths {
							allowed := func(p Policy) bool {
								_, reason, _ := compile(p).request(host, port, plain, method, path)
								return reason == ""
							}
							if got, want := allowed(both), allowed(a) && allowed(b); got != want {
								t.Fatalf("%s %s:%d plain %v %s: %v, want %v\nasked %+v\nspace %+v\nboth %+v", method, host, port, plain, path, got, want, a, b, both)
							}
						}
					}
				}
				// A tunnel would show neither method nor path: there is one only where both say so.
				m, _, _ := compile(both).connect(host, port)
				ma, _, _ := compile(a).connect(host, port)
				mb, _, _ := compile(b).connect(host, port)
				if m > ma && m > mb || m != refused && (ma == refused || mb == refused) {
					t.Fatalf("%s:%d: mode %d of %d and %d", host, port, m, ma, mb)
				}
			}
		}
	})
}

func TestCeilingAndConflictsAreNamed(t *testing.T) {
	list := &Policy{Tier: List, Rules: []Rule{{Host: "a.x.org"}, {Host: "evil.org", Methods: []string{"PUT"}}}}
	space := &Policy{Tier: List, Rules: []Rule{{Host: "*.x.org", Methods: []string{"GET"}}}}
	for want, err := range map[string]error{
		"rule for evil.org [443] PUT is not allowed by the space's policy": second(Effective(list, space, Open)),
		"tier list is not allowed by the ceiling":                          second(Effective(list, nil, Registries)),
		"tier open is not allowed by the ceiling":                          second(Effective(nil, &Policy{Tier: Open}, List)),
		"tier registries is not allowed by the space's policy":             second(Effective(&Policy{Tier: Registries}, &Policy{Tier: None}, Open)),
		"egress ceiling": second(Effective(nil, nil, "")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if p, err := Effective(nil, nil, None); err != nil || p.Tier != None {
		t.Error(p, err)
	}
	narrow := &Policy{Tier: List, Rules: list.Rules[:1]}
	p, err := Effective(narrow, space, List)
	if err != nil || len(p.Rules) != 1 || p.Rules[0].Host != "a.x.org" || !slices.Equal(p.Rules[0].Methods, []string{"GET"}) {
		t.Errorf("%+v %v", p, err)
	}
}

func second(_ Policy, err error) error { return err }

func TestForbiddenAddresses(t *testing.T) {
	for _, s := range []string{
		"0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.1.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "100::1",
	} {
		if forbidden(netip.MustParseAddr(s)) == "" {
			t.Errorf("%s is allowed", s)
		}
	}
	for _, s := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"} {
		if why := forbidden(netip.MustParseAddr(s)); why != "" {
			t.Errorf("%s: %s", s, why)
		}
	}
}

func FuzzAuthority(f *testing.F) {
	for _, s := range []string{"a.b:443", "[2606:4700::1]:443", "8.8.8.8:80", "A.B", "2130706433:443", "0x7f.0.0.1:80", "127.1:80", "a.b:0443", "a.b:+1", "[::ffff:127.0.0.1]:1", "a.b:443:443", "[fe80::1%25eth0]:1", "a..b:1", "user@a.b:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, port, ok := authority(s, 443)
		if !ok {
			return
		}
		if port < 1 || port > 65535 {
			t.Fatalf("%q: port %d", s, port)
		}
		if a, err := netip.ParseAddr(host); err == nil {
			if a.Zone() != "" || a.Is4In6() {
				t.Fatalf("%q: address %s", s, host)
			}
			return
		}
		if !validName(host) || strings.ToLower(host) != host {
			t.Fatalf("%q: name %q", s, host)
		}
	})
}
