package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"cairn/db"
	"cairn/domain/event"
)

// codeLetters leave out what is easily confused.
var codeLetters = base32.NewEncoding("ABCDEFGHJKLMNPQRSTUVWXYZ23456789").WithPadding(base32.NoPadding)

// NewCode makes a code that signs the account in once within CodeLife: 100 bits as four groups of five letters
// and digits.
func NewCode(ctx context.Context, d *db.DB, account event.ID) (string, error) {
	letters := codeLetters.EncodeToString(randomBytes(13))[:20]
	code := letters[:5] + "-" + letters[5:10] + "-" + letters[10:15] + "-" + letters[15:]
	return code, d.AddCode(ctx, account, codeHash(code), CodeLife)
}

// codeHash does not care how a person types the code.
func codeHash(code string) []byte {
	plain := strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(code))
	sum := sha256.Sum256([]byte("cairn/code/" + plain))
	return sum[:]
}

// checkCode uses the code up when it is right. It does the work of a password check too, so that the time of an
// answer tells neither which of the two an account has nor whether there is one.
func (a *Auth) checkCode(ctx context.Context, account event.ID, code string) (bool, error) {
	if _, err := a.db.PasswordHash(ctx, account); err != nil {
		return false, err
	}
	if _, err := a.compare(ctx, code, a.stranger); err != nil {
		return false, err
	}
	return a.db.TakeCode(ctx, account, codeHash(code))
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails since Go 1.24
	return b
}
