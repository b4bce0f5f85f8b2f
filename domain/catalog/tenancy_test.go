package catalog_test

import (
	"strings"
	"testing"

	"cairn/domain/account"
	"cairn/domain/agent"
	"cairn/domain/claim"
	"cairn/domain/event"
	"cairn/domain/space"
)

func TestClaimsFollowTheirOwners(t *testing.T) {
	d := newDesk(t)
	open := account.Open{Account: id("account", 8), AccountKind: account.Person, Email: "p0@example.org", DisplayName: "P", EmailMAC: mac("email", 0)}
	d.refused("claim_taken", event.System, open)
	d.refused("account_open_denied", owner, open)
	erase := account.Erase{Account: id("account", 0), Claim: claim.Stream(mac("email", 0)).ID}
	d.refused("account_not_found", event.AccountActor(id("account", 1)), erase)
	d.refused("invalid_field", owner, account.Erase{Account: id("account", 0), Claim: claim.Stream(mac("email", 1)).ID})
	d.w.must(owner, erase)
	d.w.must(owner, erase)
	d.w.must(event.System, open)
	if s := d.w.state(account.Stream(id("account", 0))).(account.State); s.Active() || !s.Email.IsZero() {
		t.Errorf("erased account %+v", s)
	}
}

// TestDisabledAccounts tries everything that a disabled account must not get.
func TestDisabledAccounts(t *testing.T) {
	d := newDesk(t)
	a, s := id("account", 0), id("session", 0)
	in := account.OpenSession{Account: a, Session: s, Method: account.MethodPassword}
	d.refused("account_operator_only", owner, account.Disable{Account: a})
	d.refused("account_operator_only", owner, account.Enable{Account: a})
	d.refused("account_not_found", event.AccountActor(id("account", 1)), account.Disable{Account: a})
	d.refused("account_not_found", event.System, account.Disable{Account: id("nobody", 0)})
	d.refused("account_not_found", event.AccountActor(id("account", 1)), in)
	d.w.must(owner, in)
	d.w.must(event.System, account.Disable{Account: a})
	d.w.must(event.System, account.Disable{Account: a})
	d.refused("account_disabled", owner, in)
	d.refused("account_disabled", owner, account.ChangePassword{Account: a, Session: s})
	d.w.must(event.System, account.RecordDenial{Account: a, Route: "POST /api/v1/login", Rule: "login_refused"})
	d.w.must(event.System, account.Enable{Account: a})
	d.w.must(owner, in)
	d.w.must(event.System, account.Erase{Account: a, Claim: claim.Stream(mac("email", 0)).ID})
	d.refused("account_not_found", event.System, account.Disable{Account: a})
	d.refused("account_not_found", event.System, in)
}

func TestEmails(t *testing.T) {
	d := newDesk(t)
	for _, email := range []string{"", "a", "a@", "@b", "a@b@c", "a b@c", " a@b", "a@b\n", "a\x00@b", strings.Repeat("a", 250) + "@b.cd", "a@\xff"} {
		d.refused("invalid_field", event.System, account.Open{Account: id("account", 8), AccountKind: account.Person, Email: email, DisplayName: "P", EmailMAC: mac("email", 8)})
	}
	d.refused("invalid_field", event.System, account.Open{Account: id("account", 8), AccountKind: account.Person, Email: "a@b", DisplayName: "P", EmailMAC: []byte{1}})
}

// TestWhoManagesMembers tries each role of the actor on each membership.
func TestWhoManagesMembers(t *testing.T) {
	roles := []space.Role{space.Owner, space.Admin, space.Member, space.Auditor}
	for _, mine := range roles {
		for _, theirs := range roles {
			s := space.State{Created: true, Members: map[event.ID]space.Role{
				id("x", 0): space.Owner, id("x", 1): mine, id("x", 2): theirs,
			}}
			may := mine == space.Owner || mine == space.Admin && theirs != space.Owner && theirs != space.Admin
			for _, c := range []event.Command{
				space.RemoveMember{Space: id("space", 5), Account: id("x", 2)},
				space.ChangeRole{Space: id("space", 5), Account: id("x", 2), Role: theirs},
				space.AddMember{Space: id("space", 5), Account: id("x", 2), Role: theirs},
			} {
				w := newWorld(t)
				w.streams[id("space", 5)] = &stream{ref: space.Stream(id("space", 5)), state: s}
				if err := w.execute(event.AccountActor(id("x", 1)), c); (err == nil) != may {
					t.Errorf("%s by %s on %s: %v", c.Name(), mine, theirs, err)
				}
			}
		}
	}
}

func TestMembersComeAndGo(t *testing.T) {
	d := newDesk(t)
	s := id("space", 0)
	auditor := event.AccountActor(id("account", 2))
	d.refused("last_owner", owner, space.RemoveMember{Space: s, Account: id("account", 0)})
	d.refused("last_owner", owner, space.ChangeRole{Space: s, Account: id("account", 0), Role: space.Member})
	d.refused("invalid_field", owner, space.AddMember{Space: s, Account: id("nobody", 0), Role: space.Member})
	d.refused("member_exists", owner, space.AddMember{Space: s, Account: id("account", 2), Role: space.Owner})
	d.refused("role_too_low", auditor, space.ChangeRole{Space: s, Account: id("account", 2), Role: space.Owner})
	d.w.must(auditor, space.RemoveMember{Space: s, Account: id("account", 2)})
	d.refused("space_not_found", auditor, space.RemoveMember{Space: s, Account: id("account", 2)})
	d.w.must(owner, space.AddMember{Space: s, Account: id("account", 1), Role: space.Owner})
	d.w.must(owner, space.RemoveMember{Space: s, Account: id("account", 0)})
	d.w.check()
}

func TestSlugs(t *testing.T) {
	d := newDesk(t)
	c := space.Create{Space: id("space", 5), DisplayName: "N", Slug: "a-1", SlugMAC: mac("slug", 5), Owner: id("account", 0)}
	for _, slug := range []string{"", "-a", "a-", "A", "a_b", "ä", strings.Repeat("a", 64)} {
		b := c
		b.Slug = slug
		d.refused("invalid_field", owner, b)
	}
	d.refused("space_create_denied", event.AccountActor(id("account", 1)), c)
	d.w.must(owner, c)
	c.Space = id("space", 6)
	d.refused("claim_taken", owner, c)
}

func TestAgentRevisions(t *testing.T) {
	d := newDesk(t)
	n := func(v int64) *int64 { return &v }
	c := agent.Revise{Agent: id("agent", 0), Space: id("space", 0), DisplayName: "A", Model: "demo", Tools: []string{"read"}, ExpectedRevision: n(1)}
	for _, bad := range []func(*agent.Revise){
		func(c *agent.Revise) { c.Tools = []string{"read", "read"} },
		func(c *agent.Revise) { c.Tools = []string{"rocket"} },
		func(c *agent.Revise) { c.Limits.WallSeconds = n(0) },
		func(c *agent.Revise) { c.Limits.ModelCalls = n(1001) },
		func(c *agent.Revise) { c.Limits.ToolSeconds = n(-1) },
		func(c *agent.Revise) { c.Limits.OutputBytes = n(1 << 30) },
		func(c *agent.Revise) { c.Model = "" },
		func(c *agent.Revise) { c.DisplayName = "a\nb" },
	} {
		b := c
		bad(&b)
		d.refused("invalid_field", owner, b)
	}
	d.w.must(owner, c)
	d.refused("agent_revised", owner, c)
}
