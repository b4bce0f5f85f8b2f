package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"cairn/db"
	domain "cairn/domain/account"
	"cairn/domain/event"
)

// Me is the account that is signed in.
type Me struct {
	Account     event.ID  `json:"account_id" format:"uuid"`
	AccountKind string    `json:"account_kind" enum:"person,service"`
	Email       *string   `json:"email"`
	Name        *string   `json:"name"`
	OpenedAt    time.Time `json:"opened_at"`
	HasPassword bool      `json:"has_password"`
	Session     event.ID  `json:"session_id" format:"uuid" doc:"Of this request."`
}

// Session is one browser or program that is signed in.
type Session struct {
	ID        event.ID  `json:"session_id" format:"uuid"`
	Current   bool      `json:"current" doc:"The one of this request."`
	Method    string    `json:"method" enum:"code,password" doc:"How it was opened."`
	Client    string    `json:"client" doc:"What the browser called itself; empty when it did not."`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at" doc:"To the minute."`
	ExpiresAt time.Time `json:"expires_at" doc:"When it is not used before."`
}

type passwordIn struct {
	Body struct {
		Password        string `json:"password" minLength:"12" maxLength:"256"`
		CurrentPassword string `json:"current_password,omitempty" maxLength:"256" doc:"Needed when the account has a password and the session was not opened with a code within the last hour."`
	}
}

type sessionIn struct {
	Session event.ID `path:"session" format:"uuid"`
}

func (a *API) meRoutes() {
	register(a, route("GET /me", "me", "The account that is signed in"), a.me)
	password := withStatus(route("POST /me/password", "me-password", "Set the password"), http.StatusNoContent)
	password.Description = "12 to 256 characters. All other sessions of the account end, and codes that were not used are void."
	register(a, password, a.setPassword)
	register(a, route("GET /me/sessions", "me-session-list", "Sessions of the account"), a.sessions)
	register(a, withStatus(route("DELETE /me/sessions/{session}", "me-session-revoke", "End a session"), http.StatusNoContent), a.revoke)
}

func (a *API) me(ctx context.Context, _ *struct{}) (*answer[Me], error) {
	session := callOf(ctx).session
	row, err := a.DB.Read().AccountByID(ctx, session.Account)
	if err != nil {
		return nil, fmt.Errorf("account %s: %w", session.Account, err)
	}
	has, err := a.Auth.HasPassword(ctx, session.Account)
	if err != nil {
		return nil, err
	}
	return reply(Me{
		Account: row.ID, AccountKind: row.AccountKind, Email: row.Email, Name: row.Name, OpenedAt: row.OpenedAt.UTC(), HasPassword: has, Session: session.ID,
	}), nil
}

func (a *API) setPassword(ctx context.Context, in *passwordIn) (*struct{}, error) {
	c := callOf(ctx)
	return nil, a.Auth.SetPassword(ctx, *c.session, c.request.RemoteAddr, in.Body.CurrentPassword, in.Body.Password)
}

func (a *API) sessions(ctx context.Context, in *PageIn) (*answer[List[Session]], error) {
	from, err := in.from("session")
	if err != nil {
		return nil, err
	}
	rows, err := a.DB.Sessions(ctx, account(ctx), from.at, from.id, in.Limit+1)
	if err != nil {
		return nil, err
	}
	now := callOf(ctx).session.ID
	show := func(s db.Session) Session {
		return Session{
			ID: s.ID, Current: s.ID == now, Method: s.Method, Client: s.Client,
			CreatedAt: s.CreatedAt.UTC(), UsedAt: s.UsedAt.UTC(), ExpiresAt: s.ExpiresAt.UTC(),
		}
	}
	return page("session", in.Limit, rows, show, func(s db.Session) place { return place{at: s.CreatedAt, id: s.ID} }), nil
}

func (a *API) revoke(ctx context.Context, in *sessionIn) (*struct{}, error) {
	was, err := a.DB.RevokeSession(ctx, account(ctx), in.Session, domain.ReasonRevoked)
	if err == nil && !was {
		err = missing("session", in.Session)
	}
	return nil, err
}
