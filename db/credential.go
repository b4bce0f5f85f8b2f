package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"cairn/db/internal/logq"
	"cairn/domain/account"
	"cairn/domain/event"
)

// The kinds of credentials. Only hashes are stored, and not even those are ever in an event: the account's stream says
// that a session was opened or ended, in the append that writes or deletes its row.
const (
	credentialCode    = "code"
	credentialSession = "session"
)

// Session is one browser or program that signed in. It lives in the vault.
//
//	(none) --AddSession--> open --SlideSession--> open --not used for its time | revoked--> (none)
type Session struct {
	ID        event.ID
	Account   event.ID
	Hash      []byte // SHA-256 of the token
	Method    string // "code" or "password": how it was made
	Client    string // what the browser called itself; may be empty
	CreatedAt time.Time
	UsedAt    time.Time // to the minute
	ExpiresAt time.Time
}

func session(row logq.VaultCredential) Session {
	s := Session{ID: row.ID, Account: row.AccountID, Hash: row.Hash, CreatedAt: row.CreatedAt}
	if row.Method != nil {
		s.Method = *row.Method
	}
	if row.Client != nil {
		s.Client = *row.Client
	}
	if row.UsedAt != nil {
		s.UsedAt = *row.UsedAt
	}
	if row.ExpiresAt != nil {
		s.ExpiresAt = *row.ExpiresAt
	}
	return s
}

// AddCode stores a code that signs the account in once within its time.
func (d *DB) AddCode(ctx context.Context, owner event.ID, hash []byte, life time.Duration) error {
	return d.addCredential(ctx, logq.CredentialInsertParams{AccountID: owner, Kind: credentialCode, Hash: hash, Seconds: life.Seconds()})
}

func (d *DB) addCredential(ctx context.Context, p logq.CredentialInsertParams) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("credential id: %w", err)
	}
	if p.ID.IsZero() {
		p.ID = event.ID(id)
	}
	if err := d.log.CredentialInsert(ctx, p); err != nil {
		return fmt.Errorf("credential of account %s: %w", p.AccountID, unreachable(err))
	}
	return nil
}

// TakeCode uses a code up. Of any number of callers with one code exactly one is told true.
func (d *DB) TakeCode(ctx context.Context, account event.ID, hash []byte) (bool, error) {
	_, err := d.log.CredentialCodeTake(ctx, logq.CredentialCodeTakeParams{AccountID: account, Hash: hash})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("code of account %s: %w", account, unreachable(err))
	}
	return true, nil
}

// PasswordHash is the account's password as argon2id in its standard text form; empty when it has none.
func (d *DB) PasswordHash(ctx context.Context, account event.ID) (string, error) {
	hash, err := d.log.CredentialPassword(ctx, account)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("password of account %s: %w", account, unreachable(err))
	}
	return string(hash), nil
}

// SetPassword stores the hash of a new password, and ends every session but one and every code of the account.
func (d *DB) SetPassword(ctx context.Context, owner event.ID, hash string, keep event.ID) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("credential id: %w", err)
	}
	_, err = d.executeWith(ctx, account.ChangePassword{Account: owner, Session: keep}, selfMeta(owner), func(ctx context.Context, log *logq.Queries) {
		log.CredentialPasswordSet(ctx, logq.CredentialPasswordSetParams{ID: event.ID(id), AccountID: owner, Hash: []byte(hash)})
	})
	if err != nil {
		return fmt.Errorf("set the password of account %s: %w", owner, err)
	}
	return nil
}

func selfMeta(owner event.ID) event.Meta {
	return event.Meta{Actor: event.AccountActor(owner), At: Now()}
}

// AddSession stores a new session, forgets the account's expired credentials and keeps its newest sessions.
func (d *DB) AddSession(ctx context.Context, s Session, life time.Duration, keep int) error {
	open := account.OpenSession{Account: s.Account, Session: s.ID, Method: s.Method}
	_, err := d.executeWith(ctx, open, selfMeta(s.Account), func(ctx context.Context, log *logq.Queries) {
		log.CredentialForgetExpired(ctx, s.Account)
		log.CredentialInsert(ctx, logq.CredentialInsertParams{
			ID: s.ID, AccountID: s.Account, Kind: credentialSession, Hash: s.Hash, Method: &s.Method, Client: &s.Client, Seconds: life.Seconds(),
		})
		log.CredentialSessionTrim(ctx, logq.CredentialSessionTrimParams{AccountID: s.Account, Keep: int32(keep)})
	})
	if err != nil {
		return fmt.Errorf("session of account %s: %w", s.Account, err)
	}
	return nil
}

// endCredentials queues what an event ends in the vault into its own append: whoever sees the event finds it ended.
func endCredentials(ctx context.Context, log *logq.Queries, owner event.ID, e event.Event) {
	switch e := e.(type) {
	case account.SessionRevoked:
		log.CredentialSessionForget(ctx, logq.CredentialSessionForgetParams{ID: e.Session, AccountID: owner})
	case account.PasswordChanged:
		log.CredentialOthersForget(ctx, logq.CredentialOthersForgetParams{AccountID: owner, Keep: e.Session})
	case account.Disabled:
		log.CredentialOthersForget(ctx, logq.CredentialOthersForgetParams{AccountID: owner})
	}
}

// SessionByHash finds a session that has not expired; IsNotFound tells that there is none.
func (d *DB) SessionByHash(ctx context.Context, hash []byte) (Session, error) {
	row, err := d.log.CredentialSessionByHash(ctx, hash)
	if IsNotFound(err) {
		return Session{}, err
	}
	if err != nil {
		return Session{}, fmt.Errorf("session: %w", unreachable(err))
	}
	return session(row), nil
}

// SlideSession says that a session was used now, which extends it.
func (d *DB) SlideSession(ctx context.Context, id event.ID, life time.Duration) error {
	if err := d.log.CredentialSessionSlide(ctx, logq.CredentialSessionSlideParams{ID: id, Seconds: life.Seconds()}); err != nil {
		return fmt.Errorf("session: %w", unreachable(err))
	}
	return nil
}

// RevokeSession ends a session of the account, for a reason of domain/account, and reports whether there was one.
func (d *DB) RevokeSession(ctx context.Context, owner, id event.ID, reason string) (bool, error) {
	was, err := d.log.CredentialSessionExists(ctx, logq.CredentialSessionExistsParams{ID: id, AccountID: owner})
	if err != nil {
		return false, fmt.Errorf("session %s: %w", id, unreachable(err))
	}
	if !was {
		return false, nil
	}
	if _, err := d.Execute(ctx, account.RevokeSession{Account: owner, Session: id, Reason: reason}, selfMeta(owner)); err != nil {
		return false, fmt.Errorf("revoke session %s: %w", id, err)
	}
	return true, nil
}

// Sessions lists up to limit sessions of an account, newest first, after the place that is given.
func (d *DB) Sessions(ctx context.Context, account event.ID, at time.Time, id event.ID, limit int) ([]Session, error) {
	rows, err := d.log.CredentialSessionPage(ctx, logq.CredentialSessionPageParams{AccountID: account, At: at, ID: id, Lim: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("sessions of account %s: %w", account, unreachable(err))
	}
	sessions := make([]Session, len(rows))
	for i, row := range rows {
		sessions[i] = session(row)
	}
	return sessions, nil
}

// CanSignIn reports whether the account has a password, a session, or a code that is still good.
func (d *DB) CanSignIn(ctx context.Context, account event.ID) (bool, error) {
	known, err := d.log.CredentialKnown(ctx, account)
	if err != nil {
		return false, fmt.Errorf("credentials of account %s: %w", account, unreachable(err))
	}
	return known, nil
}
