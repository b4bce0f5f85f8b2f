package server

import (
	"net/http"

	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/server/auth"
	"cairn/server/denial"
	"cairn/server/live"
)

// watchers lets those who have signed in watch: the session's cookie is all that counts.
type watchers struct{ auth *auth.Auth }

// Authenticate implements live.Authenticator.
func (w watchers) Authenticate(r *http.Request) (live.Principal, error) {
	session, err := w.auth.Session(r)
	if err != nil {
		return live.Principal{}, err
	}
	if session == nil {
		return live.Principal{}, fault.New(fault.Denied, "not_signed_in", "sign in first: POST /api/v1/login")
	}
	return live.Principal{Account: session.Account, Expires: session.ExpiresAt}, nil
}

// deniedTopic records a topic that exists and may not be watched.
func (s *Server) deniedTopic(id event.ID, topic live.Topic) {
	s.denials.Known(denial.Denial{
		Account: id, Actor: event.AccountActor(id), Route: "live", Rule: "topic_not_found", Target: topic.ID, Exists: true,
	})
}
