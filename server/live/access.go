package live

import (
	"context"
	"errors"
	"net/http"
	"time"

	"cairn/db"
	"cairn/db/read"
	"cairn/domain/account"
	"cairn/domain/claim"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/space"
)

// Principal is who a socket belongs to.
type Principal struct {
	Account event.ID
	Expires time.Time // of the credential; zero: it does not expire by itself
}

// Authenticator says who made a request. The hub asks with the cookies of the handshake, or with a header
// "Authorization: Bearer TOKEN" built from the first message; and again, while the socket is open, every
// Config.Recheck and at once when an event of the account passes. A fault of the kind denied, not_found or
// invalid means that the credential counts for nothing; every other error that it could not be checked now.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
}

// Authorizer says whether a principal may watch a topic, and which space owns it: the zero id for none. A
// fault of the kind not_found or denied is the answer "no"; every other error that it could not be checked now.
type Authorizer interface {
	Allowed(ctx context.Context, p Principal, topic Topic) (space event.ID, err error)
}

// Members lets the members of a space watch all its topics, in every role, and an account its own topic.
type Members struct {
	Read *read.Queries
}

// Allowed implements Authorizer.
func (m Members) Allowed(ctx context.Context, p Principal, topic Topic) (event.ID, error) {
	row, err := m.Read.TopicAccess(ctx, read.TopicAccessParams{AccountID: p.Account, Topic: topic.ID})
	switch {
	case db.IsNotFound(err):
		return event.ID{}, unknownTopic(topic)
	case err != nil:
		return event.ID{}, err
	case row.Kind == account.Kind && topic == Topic{ID: p.Account}:
		return event.ID{}, nil
	case row.Kind == account.Kind, row.Kind == claim.Kind, row.SpaceID.IsZero(), row.Role == nil, row.Erased == nil, *row.Erased:
		return event.ID{}, unknownTopic(topic)
	case topic.Activity && row.Kind != space.Kind:
		return event.ID{}, unknownTopic(topic)
	}
	return row.SpaceID, nil
}

// unknownTopic is the same for topics that do not exist and for those of others.
func unknownTopic(topic Topic) error {
	return fault.New(fault.NotFound, "topic_not_found", "there is no topic %s that you may watch", topic)
}

// refused reports whether an answer of an Authorizer or Authenticator is a no, rather than a failure.
func refused(err error) bool {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.Denied, fault.Invalid:
		return true
	}
	return false
}

// credential keeps of the handshake what a later authentication needs.
func credential(r *http.Request, token string) *http.Request {
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	} else if cookies := r.Header.Values("Cookie"); len(cookies) > 0 {
		header["Cookie"] = cookies
	}
	return &http.Request{Method: http.MethodGet, URL: r.URL, Host: r.Host, RemoteAddr: r.RemoteAddr, TLS: r.TLS, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
}

// who asks the Authenticator; ok is false when the credential counts for nothing.
func (h *Hub) who(ctx context.Context, credential *http.Request) (p Principal, ok bool, err error) {
	p, err = h.Authenticate.Authenticate(credential.WithContext(ctx))
	switch {
	case refused(err):
		return Principal{}, false, nil
	case err != nil:
		return Principal{}, false, err
	case p.Account.IsZero():
		return Principal{}, false, errors.New("live: the authenticator named no account")
	}
	return p, p.Expires.IsZero() || time.Now().Before(p.Expires), nil
}
