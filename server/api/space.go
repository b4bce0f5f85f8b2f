package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"cairn/db/read"
	"cairn/domain/event"
	"cairn/domain/space"
)

// Space is a space as one of its members sees it.
type Space struct {
	ID        event.ID  `json:"space_id" format:"uuid"`
	Name      *string   `json:"name"`
	Slug      *string   `json:"slug"`
	Personal  bool      `json:"personal"`
	Role      string    `json:"role" enum:"owner,admin,member,auditor" doc:"Of the caller."`
	CreatedAt time.Time `json:"created_at"`
	Version   int64     `json:"version"`
}

// SpaceCreated names a new space.
type SpaceCreated struct {
	Space   event.ID `json:"space_id" format:"uuid"`
	Version int64    `json:"version"`
}

type spaceCreateIn struct {
	Keyed
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"200"`
		Slug string `json:"slug" minLength:"1" maxLength:"63" doc:"Lower-case letters, digits and inner hyphens; unique in the installation."`
	}
}

// InSpace is a list in a space.
type InSpace struct {
	Space event.ID `path:"space" format:"uuid"`
	PageIn
}

func (a *API) spaceRoutes() {
	register(a, route("GET /spaces", "space-list", "Spaces of the caller"), a.spaces)
	create := withStatus(route("POST /spaces", "space-create", "Create a space"), http.StatusCreated)
	create.Description = "The caller becomes its owner."
	register(a, create, a.createSpace)
}

func (a *API) spaces(ctx context.Context, in *PageIn) (*answer[List[Space]], error) {
	from, err := in.from("space")
	if err != nil {
		return nil, err
	}
	rows, err := a.DB.Read().SpacePage(ctx, read.SpacePageParams{AccountID: account(ctx), At: from.at, ID: from.id, Lim: int32(in.Limit + 1)})
	if err != nil {
		return nil, fmt.Errorf("spaces: %w", err)
	}
	show := func(r read.SpacePageRow) Space {
		return Space{ID: r.ID, Name: r.Name, Slug: r.Slug, Personal: r.Personal, Role: r.Role, CreatedAt: r.CreatedAt.UTC(), Version: r.Version}
	}
	return page("space", in.Limit, rows, show, func(r read.SpacePageRow) place { return place{at: r.CreatedAt, id: r.ID} }), nil
}

func (a *API) createSpace(ctx context.Context, in *spaceCreateIn) (*answer[SpaceCreated], error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	made, err := decoded[space.Answer](a.execute(ctx, space.Create{
		Space: id, DisplayName: in.Body.Name, Slug: in.Body.Slug, SlugMAC: a.DB.Keys().ClaimMAC("slug", in.Body.Slug), Owner: account(ctx),
	}, in.IdempotencyKey, in))
	if err != nil {
		return nil, err
	}
	return reply(SpaceCreated{Space: made.Space, Version: 1}), nil
}
