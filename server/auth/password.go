package auth

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
	"golang.org/x/crypto/argon2"

	"cairn/db"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// Passwords have 12 to 256 characters, of any kind.
const (
	MinPassword = 12
	MaxPassword = 256
)

// hashCost is the recommendation of the OWASP password storage cheat sheet for argon2id: 19 MiB, two passes,
// one lane.
var hashCost = &argon2id.Params{Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// hashOfNobody looks like a hash at the same cost, but is random: no password is known to have it.
func hashOfNobody() string {
	text := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashCost.Memory, hashCost.Iterations, hashCost.Parallelism,
		text(randomBytes(int(hashCost.SaltLength))), text(randomBytes(int(hashCost.KeyLength))))
}

func hashPassword(password string) (string, error) { return argon2id.CreateHash(password, hashCost) }

// compare is slow on purpose; few run at once, the others wait.
func (a *Auth) compare(ctx context.Context, password, hash string) (bool, error) {
	select {
	case a.hashing <- struct{}{}:
		defer func() { <-a.hashing }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	right, err := argon2id.ComparePasswordAndHash(password, hash)
	if err != nil {
		return false, fmt.Errorf("password hash: %w", err)
	}
	return right, nil
}

// checkPassword does the same work whether the account exists, has a password, or neither.
func (a *Auth) checkPassword(ctx context.Context, account event.ID, password string) (bool, error) {
	hash, err := a.db.PasswordHash(ctx, account)
	if err != nil {
		return false, err
	}
	known := hash != ""
	if !known {
		hash = a.stranger
	}
	right, err := a.compare(ctx, password, hash)
	if err != nil {
		return false, err
	}
	// As checkCode does: one more question to the vault.
	if _, err := a.db.TakeCode(ctx, event.ID{}, codeHash(password)); err != nil {
		return false, err
	}
	return right && known, nil
}

// HasPassword reports whether the account has a password.
func (a *Auth) HasPassword(ctx context.Context, account event.ID) (bool, error) {
	hash, err := a.db.PasswordHash(ctx, account)
	return hash != "", err
}

// SetPassword gives the account of a session a password. One that has a password must prove it, unless the
// session was opened with a code just now: that is how a forgotten password is replaced. All other sessions and
// codes of the account end.
func (a *Auth) SetPassword(ctx context.Context, s db.Session, address, current, password string) error {
	if err := checkNewPassword(password); err != nil {
		return err
	}
	if err := a.limits.allow(address, "password "+s.Account.String()); err != nil {
		return err
	}
	has, err := a.HasPassword(ctx, s.Account)
	if err != nil {
		return err
	}
	if has && !(s.Method == "code" && time.Since(s.CreatedAt) < CodeLife) {
		right, err := a.checkPassword(ctx, s.Account, current)
		if err != nil {
			return err
		}
		if !right {
			return fault.New(fault.Denied, "password_refused", "current_password is not the account's password: check it, or sign in with a code")
		}
	}
	select {
	case a.hashing <- struct{}{}:
		defer func() { <-a.hashing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	hash, err := hashPassword(password)
	if err != nil {
		return fmt.Errorf("password hash: %w", err)
	}
	return a.db.SetPassword(ctx, s.Account, hash, s.ID)
}

func checkNewPassword(password string) error {
	if n := utf8.RuneCountInString(password); n < MinPassword || n > MaxPassword {
		return fault.Field("password", "want %d to %d characters, got %d: choose a longer or shorter one", MinPassword, MaxPassword, n)
	}
	first, _ := utf8.DecodeRuneInString(password)
	if strings.Trim(password, string(first)) == "" {
		return fault.Field("password", "it is one character over and over: choose another")
	}
	return nil
}
