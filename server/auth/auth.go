// Package auth is who calls: signing in with a single-use code or a password, sessions, and how often either
// may be tried.
//
//	code (one hour, once) ----\
//	                           login --> session (30 days after its last use) --> ended
//	password (argon2id) ------/          by logout, revocation, a new password, or when the account is disabled
//
// A session is a random token of 256 bits in a cookie. The vault keeps its SHA-256 and nothing else of it; no
// secret is ever in an event, in a URL or in a log line. A wrong address, a wrong password and a wrong code get
// the same answer after the same work.
//
// It may import db, domain, golang.org/x and argon2id.
package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"cairn/db"
	"cairn/domain/account"
	"cairn/domain/claim"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// Lives of what signs in.
const (
	CodeLife    = time.Hour
	SessionLife = 30 * 24 * time.Hour // after the last use
)

// maxSessions is how many sessions an account keeps; the oldest ones end.
const maxSessions = 100

// Auth answers who a request comes from. It is safe for concurrent use.
type Auth struct {
	db       *db.DB
	limits   *limits
	hashing  chan struct{} // bounds the memory that password hashes may take at once
	stranger string        // a hash that no password has, so that a wrong address costs what a wrong password does
}

// New makes it ready. The zero Limits are the standard ones.
func New(d *db.DB, l Limits) *Auth {
	return &Auth{db: d, limits: newLimits(l), hashing: make(chan struct{}, 4), stranger: hashOfNobody()}
}

// Attempt is one try to sign in. Exactly one of Code and Password is given.
type Attempt struct {
	Email, Code, Password string
	Address               string // of the caller, as server/proxy leaves it in RemoteAddr
	Client                string // User-Agent
}

// errWrong says no more than that.
var errWrong = fault.New(fault.Denied, "login_refused", "e-mail, code and password do not belong together, or the code was used or is older than an hour: check them, or ask the operator for a new code")

// Refused is the one answer to everything that does not sign in, with what is for the records alone.
type Refused struct {
	*fault.Fault
	Account event.ID // that holds the address
}

// Unwrap gives the fault to those who only know faults.
func (r *Refused) Unwrap() error { return r.Fault }

func refused(id event.ID) error {
	if id.IsZero() {
		return errWrong
	}
	return &Refused{Fault: errWrong, Account: id}
}

// Login answers a new session and the token for its cookie. A token that the caller brought along is never
// taken over: nobody can plant a session that another person then signs in to.
func (a *Auth) Login(ctx context.Context, try Attempt) (db.Session, string, error) {
	email := NormalEmail(try.Email)
	if err := a.limits.allow(try.Address, string(a.db.Keys().MAC("login", []byte(email)))); err != nil {
		return db.Session{}, "", err
	}
	id, err := a.accountOf(ctx, email)
	if err != nil {
		return db.Session{}, "", err
	}
	method := "code"
	var right bool
	if try.Password != "" {
		method = "password"
		right, err = a.checkPassword(ctx, id, try.Password)
	} else {
		right, err = a.checkCode(ctx, id, try.Code)
	}
	if err != nil {
		return db.Session{}, "", err
	}
	if !right {
		return db.Session{}, "", refused(id)
	}
	session, token, err := a.open(ctx, id, method, try.Client)
	if fault.HasCode(err, "account_disabled") || fault.HasCode(err, "account_not_found") {
		err = refused(id) // nobody learns that a credential was right
	}
	return session, token, err
}

func (a *Auth) open(ctx context.Context, id event.ID, method, client string) (db.Session, string, error) {
	token := newToken()
	v7, err := uuid.NewV7()
	if err != nil {
		return db.Session{}, "", fmt.Errorf("session id: %w", err)
	}
	s := db.Session{ID: event.ID(v7), Account: id, Hash: tokenHash(token), Method: method, Client: clientName(client)}
	return s, token, a.db.AddSession(ctx, s, SessionLife, maxSessions)
}

// accountOf finds the account that holds the claim on an address; the zero id when there is none.
func (a *Auth) accountOf(ctx context.Context, email string) (event.ID, error) {
	row, err := a.db.Read().ClaimByID(ctx, claim.Stream(a.db.Keys().ClaimMAC("email", email)).ID)
	if db.IsNotFound(err) || err == nil && (row.OwnerID == nil || row.OwnerKind == nil || *row.OwnerKind != account.Kind) {
		return event.ID{}, nil
	}
	if err != nil {
		return event.ID{}, fmt.Errorf("account by address: %w", err)
	}
	return *row.OwnerID, nil
}

// Session answers the session of a request's cookie, nil when it has none that is good. Tokens are taken from
// the cookie alone.
func (a *Auth) Session(r *http.Request) (*db.Session, error) {
	token := readCookie(r)
	if token == "" {
		return nil, nil
	}
	hash := tokenHash(token)
	s, err := a.db.SessionByHash(r.Context(), hash)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(hash, s.Hash) != 1 {
		return nil, nil
	}
	row, err := a.db.Read().AccountByID(r.Context(), s.Account)
	if db.IsNotFound(err) || err == nil && (row.Erased || row.Disabled) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("account of the session: %w", err)
	}
	return &s, a.db.SlideSession(r.Context(), s.ID, SessionLife)
}

// NormalEmail is the form in which addresses are compared and claimed.
func NormalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// newToken is 256 random bits.
func newToken() string { return base64.RawURLEncoding.EncodeToString(randomBytes(32)) }

func tokenHash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// clientName keeps what people recognise a browser by, as text that can be stored.
func clientName(agent string) string {
	agent = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, agent), "")
	if len(agent) > 200 {
		agent = strings.ToValidUTF8(agent[:200], "")
	}
	return agent
}
