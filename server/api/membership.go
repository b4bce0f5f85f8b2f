package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"cairn/db"
	"cairn/db/read"
	"cairn/domain/event"
	"cairn/domain/space"
)

// Membership is an account in a space.
type Membership struct {
	Account event.ID  `json:"account_id" format:"uuid"`
	Name    *string   `json:"name"`
	Role    string    `json:"role" enum:"owner,admin,member,auditor"`
	Since   time.Time `json:"since"`
}

// MembershipChanged says what a membership is now.
type MembershipChanged struct {
	Space   event.ID `json:"space_id" format:"uuid"`
	Account event.ID `json:"account_id" format:"uuid"`
	Role    string   `json:"role" enum:"owner,admin,member,auditor"`
	Version int64    `json:"version" doc:"Of the space."`
}

type membershipAddIn struct {
	Keyed
	Space event.ID `path:"space" format:"uuid"`
	Body  struct {
		Account event.ID `json:"account_id" format:"uuid" doc:"GET /me shows it to its owner."`
		Role    string   `json:"role" enum:"owner,admin,member,auditor"`
	}
}

// OneMembership is the path of one.
type OneMembership struct {
	Space   event.ID `path:"space" format:"uuid"`
	Account event.ID `path:"account" format:"uuid"`
}

type membershipChangeIn struct {
	OneMembership
	Body struct {
		Role string `json:"role" enum:"owner,admin,member,auditor"`
	}
}

func (a *API) membershipRoutes() {
	register(a, route("GET /spaces/{space}/memberships", "membership-list", "Members of a space"), a.memberships)
	add := withStatus(route("POST /spaces/{space}/memberships", "membership-add", "Add a member"), http.StatusCreated)
	add.Description = "Owners give every role, admins member and auditor."
	register(a, add, a.addMember)
	change := route("PATCH /spaces/{space}/memberships/{account}", "membership-change", "Change a member's role")
	change.Description = "Owners change every role, admins between member and auditor. A space keeps at least one owner."
	register(a, change, a.changeRole)
	remove := withStatus(route("DELETE /spaces/{space}/memberships/{account}", "membership-remove", "Remove a member"), http.StatusNoContent)
	remove.Description = "Everyone may leave; owners remove everyone, admins members and auditors."
	register(a, remove, a.removeMember)
}

func (a *API) memberships(ctx context.Context, in *InSpace) (*answer[List[Membership]], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	from, err := in.from("membership")
	if err != nil {
		return nil, err
	}
	rows, err := a.DB.Read().MembershipPage(ctx, read.MembershipPageParams{SpaceID: in.Space, At: from.at, ID: from.id, Lim: int32(in.Limit + 1)})
	if err != nil {
		return nil, fmt.Errorf("members of space %s: %w", in.Space, err)
	}
	show := func(r read.MembershipPageRow) Membership {
		return Membership{Account: r.AccountID, Name: r.Name, Role: r.Role, Since: r.Since.UTC()}
	}
	return page("membership", in.Limit, rows, show, func(r read.MembershipPageRow) place { return place{at: r.Since, id: r.AccountID} }), nil
}

func (a *API) addMember(ctx context.Context, in *membershipAddIn) (*answer[MembershipChanged], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	result, err := a.execute(ctx, space.AddMember{Space: in.Space, Account: in.Body.Account, Role: space.Role(in.Body.Role)}, in.IdempotencyKey, in)
	return a.membershipChanged(ctx, in.Space, in.Body.Account, in.Body.Role, result, err)
}

func (a *API) changeRole(ctx context.Context, in *membershipChangeIn) (*answer[MembershipChanged], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	result, err := a.execute(ctx, space.ChangeRole{Space: in.Space, Account: in.Account, Role: space.Role(in.Body.Role)}, "", nil)
	return a.membershipChanged(ctx, in.Space, in.Account, in.Body.Role, result, err)
}

func (a *API) membershipChanged(ctx context.Context, id, member event.ID, role string, result db.Result, err error) (*answer[MembershipChanged], error) {
	if err != nil {
		return nil, err
	}
	version, err := a.version(ctx, space.Stream(id), result)
	if err != nil {
		return nil, err
	}
	return reply(MembershipChanged{Space: id, Account: member, Role: role, Version: version}), nil
}

func (a *API) removeMember(ctx context.Context, in *OneMembership) (*struct{}, error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	_, err := a.execute(ctx, space.RemoveMember{Space: in.Space, Account: in.Account}, "", nil)
	return nil, err
}
