package api

import (
	"context"
	"errors"
	"net/http"

	domain "cairn/domain/account"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/server/auth"
)

type loginIn struct {
	Body struct {
		Email    string `json:"email" minLength:"3" maxLength:"254" doc:"Case does not matter."`
		Code     string `json:"code,omitempty" maxLength:"64" doc:"A single-use code, good for an hour. Hyphens and case do not matter."`
		Password string `json:"password,omitempty" maxLength:"256"`
	}
}

// SignedIn tells who a session belongs to.
type SignedIn struct {
	Account     event.ID `json:"account_id" format:"uuid"`
	Session     event.ID `json:"session_id" format:"uuid"`
	HasPassword bool     `json:"has_password" doc:"false: set one with POST /me/password before the session ends."`
}

type loginOut struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
	Body      SignedIn
}

type logoutOut struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
}

func (a *API) loginRoutes() {
	in := withStatus(route("POST /login", "login", "Sign in with a code or a password"), http.StatusOK)
	in.Security = []map[string][]string{}
	in.Description = "Sets the session's cookie: a new one every time. A wrong address, code and password get the same answer: 401 login_refused. Too many attempts get 429 with Retry-After."
	in.Errors = append(in.Errors, http.StatusUnauthorized)
	register(a, in, a.login)
	register(a, withStatus(route("POST /logout", "logout", "End the session"), http.StatusNoContent), a.logout)
}

func (a *API) login(ctx context.Context, in *loginIn) (*loginOut, error) {
	if (in.Body.Code == "") == (in.Body.Password == "") {
		return nil, fault.Field("code", "give either code or password")
	}
	c := callOf(ctx)
	session, token, err := a.Auth.Login(ctx, auth.Attempt{
		Email: in.Body.Email, Code: in.Body.Code, Password: in.Body.Password, Address: c.request.RemoteAddr, Client: c.request.UserAgent(),
	})
	if err != nil {
		if no, ok := errors.AsType[*auth.Refused](err); ok {
			c.named = no.Account
		}
		return nil, err
	}
	// Whoever signs in again in one browser leaves no second session behind.
	if c.session != nil && c.session.Account == session.Account {
		if _, err := a.DB.RevokeSession(ctx, c.session.Account, c.session.ID, domain.ReasonReplaced); err != nil {
			return nil, err
		}
	}
	has, err := a.Auth.HasPassword(ctx, session.Account)
	if err != nil {
		return nil, err
	}
	return &loginOut{SetCookie: *auth.SetCookie(c.request, token), Body: SignedIn{Account: session.Account, Session: session.ID, HasPassword: has}}, nil
}

func (a *API) logout(ctx context.Context, _ *struct{}) (*logoutOut, error) {
	c := callOf(ctx)
	if _, err := a.DB.RevokeSession(ctx, c.session.Account, c.session.ID, domain.ReasonLogout); err != nil {
		return nil, err
	}
	return &logoutOut{SetCookie: *auth.ClearCookie(c.request)}, nil
}
