package space

import (
	"reflect"
	"strings"

	"cairn/domain/account"
	"cairn/domain/check"
	"cairn/domain/claim"
	"cairn/domain/event"
	"cairn/domain/fault"
)

const (
	maxName    = 200
	maxSlug    = 63
	maxMembers = 1000
)

// Decide implements event.Command.
func (c Create) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	self, _ := event.ActorAccount(meta.Actor)
	if meta.Actor != event.System && (self.IsZero() || self != c.Owner) {
		return nil, fault.New(fault.Denied, "space_create_denied", "a space is created by the account that will own it: set owner to your own account")
	}
	err := check.First(check.ID("space", c.Space), check.ID("owner", c.Owner),
		check.Line("name", c.DisplayName, 1, maxName), checkSlug("slug", c.Slug), claim.CheckMAC("slug_mac", c.SlugMAC))
	if err != nil {
		return nil, err
	}
	if err := requireAccount(view, "owner", c.Owner); err != nil {
		return nil, err
	}
	if event.StateOf[State](view, Stream(c.Space)).Created {
		return nil, fault.New(fault.Conflict, "space_exists", "space %s exists: use a new id", c.Space)
	}
	ref := claim.Stream(c.SlugMAC)
	claims, err := claim.Take(ref, event.StateOf[claim.State](view, ref), "slug", holder(c.Space))
	if err != nil {
		return nil, err
	}
	created := Created{Personal: c.Personal, Name: event.Seal(c.DisplayName), Slug: event.Seal(c.Slug), Claim: ref.ID, Owner: c.Owner}
	return append(change(c.Space, created), claims...), nil
}

func checkSlug(field, slug string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if slug == "" || len(slug) > maxSlug || strings.ContainsFunc(slug, bad) || slug[0] == '-' || slug[len(slug)-1] == '-' {
		return fault.Field(field, "%.80q: want 1 to %d lower-case letters, digits and inner hyphens", slug, maxSlug)
	}
	return nil
}

func checkRole(role Role) error {
	return check.OneOf("role", string(role), string(Owner), string(Admin), string(Member), string(Auditor))
}

func requireAccount(view event.View, field string, id event.ID) error {
	if !event.StateOf[account.State](view, account.Stream(id)).Active() {
		return fault.Field(field, "account %s does not exist: open it first", id)
	}
	return nil
}

func change(space event.ID, e event.Event) []event.Change {
	return []event.Change{{Stream: Stream(space), Events: []event.Event{e}}}
}

// Decide implements event.Command.
func (c AddMember) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, Stream(c.Space))
	if err := check.First(requireOver(state, meta.Actor, c.Role), check.ID("account", c.Account), checkRole(c.Role)); err != nil {
		return nil, err
	}
	switch role := state.Role(c.Account); {
	case role == c.Role:
		return nil, nil
	case role != "":
		return nil, fault.New(fault.Conflict, "member_exists", "account %s is already %s here: change its role instead", c.Account, role)
	case len(state.Members) >= maxMembers:
		return nil, fault.New(fault.Exhausted, "members_exhausted", "the space has %d members, the limit is %d: remove some", len(state.Members), maxMembers)
	}
	if err := requireAccount(view, "account", c.Account); err != nil {
		return nil, err
	}
	return change(c.Space, MemberAdded{Account: c.Account, Role: c.Role}), nil
}

// Decide implements event.Command.
func (c ChangeRole) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, Stream(c.Space))
	role := state.Role(c.Account)
	if err := check.First(requireOver(state, meta.Actor, role, c.Role), checkRole(c.Role), requireMember(role, c.Account)); err != nil {
		return nil, err
	}
	if role == c.Role {
		return nil, nil
	}
	if err := keepOwner(state, role); err != nil {
		return nil, err
	}
	return change(c.Space, MemberRoleChanged{Account: c.Account, Role: c.Role}), nil
}

// Decide implements event.Command.
func (c RemoveMember) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, Stream(c.Space))
	role := state.Role(c.Account)
	may := requireOver(state, meta.Actor, role)
	if self, ok := event.ActorAccount(meta.Actor); ok && self == c.Account {
		may = Require(state, meta.Actor, Owner, Admin, Member, Auditor)
	}
	if err := check.First(may, requireMember(role, c.Account)); err != nil {
		return nil, err
	}
	if err := keepOwner(state, role); err != nil {
		return nil, err
	}
	return change(c.Space, MemberRemoved{Account: c.Account}), nil
}

func requireMember(role Role, id event.ID) error {
	if role == "" {
		return fault.New(fault.NotFound, "member_not_found", "account %s is no member here: add it first", id)
	}
	return nil
}

// keepOwner refuses to let the last owner go, whose role is given.
func keepOwner(s State, role Role) error {
	if role == Owner && s.owners() == 1 {
		return fault.New(fault.Conflict, "last_owner", "this is the last owner of the space: make another member owner first")
	}
	return nil
}

// Decide implements event.Command.
func (c Erase) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, Stream(c.Space))
	if err := Require(state, meta.Actor, Owner); err != nil {
		return nil, err
	}
	if c.Claim != state.Claim {
		return nil, fault.Field("claim", "%s is not the claim of space %s: give the one that it was created with", c.Claim, c.Space)
	}
	ref := claim.Ref(c.Claim)
	freed := claim.Release(ref, event.StateOf[claim.State](view, ref), holder(c.Space))
	return append(change(c.Space, Erased{}), freed...), nil
}

// Decide implements event.Command.
func (c BoundEgress) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, Stream(c.Space))
	if err := check.First(Require(state, meta.Actor, Owner, Admin), c.Egress.Check("egress")); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(state.Egress, c.Egress) {
		return nil, nil
	}
	return change(c.Space, EgressBounded{Egress: c.Egress}), nil
}
