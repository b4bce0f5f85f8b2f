// Package runtoken makes and checks the token with which one epoch of one run
// speaks to the model gateway. It lies below server and worker, which must not
// import each other, and imports the standard library only. It knows no
// database: whether the run is still at that epoch is asked elsewhere.
//
// Form, all ASCII:
//
//	cairn-run-v1.<payload>.<mac>
//	payload = base64url, unpadded, of {"run":"…","epoch":N,"expires_us":N}
//	mac     = base64url, unpadded, of HMAC-SHA256(key, "cairn-run-v1." + payload)
//
// expires_us is in microseconds since 1970 (UTC). The MAC covers the prefix, so
// a later version with another meaning can never be read as this one.
package runtoken

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// MinKey is the shortest key, in bytes, that Verify accepts.
	MinKey = 32

	prefix   = "cairn-run-v1."
	maxToken = 1024 // bytes; a token of ours is about 150
)

// The refusals of Verify, told apart with errors.Is.
var (
	ErrKey       = errors.New("run token key is too short")
	ErrMalformed = errors.New("not a run token")
	ErrSignature = errors.New("run token has another signature")
	ErrExpired   = errors.New("run token has expired")
)

// encoding is strict, so that one token has one spelling.
var encoding = base64.RawURLEncoding.Strict()

// Claims is what a token says about its bearer.
type Claims struct {
	Run     string
	Epoch   int64
	Expires time.Time // UTC, microseconds
}

type payload struct {
	Run       string `json:"run"`
	Epoch     int64  `json:"epoch"`
	ExpiresUS int64  `json:"expires_us"`
}

// CheckKey says at start-up what Verify would say at the first request.
func CheckKey(key []byte) error {
	if len(key) < MinKey {
		return fmt.Errorf("%w: %d bytes, need at least %d", ErrKey, len(key), MinKey)
	}
	return nil
}

// Mint signs a token for one epoch of one run, good until expires. A key that
// CheckKey refuses makes tokens that no Verify accepts.
func Mint(key []byte, run string, epoch int64, expires time.Time) string {
	// A struct of a string and two integers cannot fail to encode.
	body, _ := json.Marshal(payload{Run: run, Epoch: epoch, ExpiresUS: expires.UnixMicro()})
	signed := prefix + encoding.EncodeToString(body)
	return signed + "." + encoding.EncodeToString(sign(key, signed))
}

// Verify checks form, signature and expiry, in this order: nothing inside the
// payload is read before the signature holds. The comparison takes the same
// time wherever the difference lies.
func Verify(key []byte, token string, now time.Time) (Claims, error) {
	if err := CheckKey(key); err != nil {
		return Claims{}, err
	}
	signed, mac, err := split(token)
	if err != nil {
		return Claims{}, err
	}
	if !hmac.Equal(mac, sign(key, signed)) {
		return Claims{}, ErrSignature
	}
	claims, err := decode(strings.TrimPrefix(signed, prefix))
	if err != nil {
		return Claims{}, err
	}
	if !now.Before(claims.Expires) {
		return Claims{}, fmt.Errorf("%w: at %s", ErrExpired, claims.Expires.Format(time.RFC3339))
	}
	return claims, nil
}

func sign(key []byte, signed string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(signed))
	return mac.Sum(nil)
}

// split does not repeat any part of the token in its errors: they are logged.
func split(token string) (signed string, mac []byte, err error) {
	if len(token) > maxToken || !strings.HasPrefix(token, prefix) {
		return "", nil, fmt.Errorf("%w: it does not begin with %q or is longer than %d bytes", ErrMalformed, prefix, maxToken)
	}
	dot := strings.LastIndexByte(token, '.')
	if dot < len(prefix) {
		return "", nil, fmt.Errorf("%w: the signature is missing", ErrMalformed)
	}
	mac, err = encoding.DecodeString(token[dot+1:])
	// Even the strict decoder skips line ends; encoding again refuses them.
	if err != nil || len(mac) != sha256.Size || encoding.EncodeToString(mac) != token[dot+1:] {
		return "", nil, fmt.Errorf("%w: the signature is not %d bytes of base64url", ErrMalformed, sha256.Size)
	}
	return token[:dot], mac, nil
}

func decode(body string) (Claims, error) {
	raw, err := encoding.DecodeString(body)
	if err != nil {
		return Claims{}, fmt.Errorf("%w: the payload is not base64url", ErrMalformed)
	}
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil || p.Run == "" {
		return Claims{}, fmt.Errorf("%w: the payload names no run", ErrMalformed)
	}
	return Claims{Run: p.Run, Epoch: p.Epoch, Expires: time.UnixMicro(p.ExpiresUS).UTC()}, nil
}
