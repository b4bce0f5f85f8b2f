package api

import (
	"net/http"
	"strings"

	"cairn/domain/event"
	"cairn/server/denial"
)

// noteDenial hands a refusal to the records, once it was answered. What was asked for wrongly is no refusal.
func (a *API) noteDenial(r *http.Request, c *call) {
	p := c.problem
	if a.Denials == nil || p == nil {
		return
	}
	d := denial.Denial{Route: r.Pattern, Rule: p.Code, Target: firstID(r)}
	switch {
	case !c.named.IsZero():
		d.Account, d.Actor = c.named, event.System
	case c.session != nil:
		d.Account, d.Actor = c.session.Account, event.AccountActor(c.session.Account)
	}
	switch p.Status {
	case http.StatusForbidden:
	case http.StatusNotFound:
		if d.Exists = true; d.Target.IsZero() || d.Account.IsZero() {
			return
		}
	case http.StatusUnauthorized, http.StatusTooManyRequests:
	default:
		return
	}
	if d.Account.IsZero() || d.Route == "" {
		a.Denials.Anonymous(p.Code)
		return
	}
	a.Denials.Known(d)
}

// firstID is the first id in the path: what the request was about.
func firstID(r *http.Request) event.ID {
	_, rest, _ := strings.Cut(r.Pattern, "{")
	name, _, _ := strings.Cut(rest, "}")
	id, err := event.ParseID(r.PathValue(name))
	if err != nil {
		return event.ID{}
	}
	return id
}
