package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cairn/db/runtoken"
)

// What an Authorizer wraps to say more than "could not find out".
var (
	ErrUnauthorized = errors.New("token not accepted")
	ErrFenced       = errors.New("run has ended or another worker holds it")
)

// RunTokens authorises run tokens. StillRunning answers nil when the run is
// running at this epoch, an error that wraps ErrFenced when it is not, and any
// other error when it could not find out.
type RunTokens struct {
	Key          []byte
	StillRunning func(ctx context.Context, run string, epoch int64) error
	Now          func() time.Time
}

// Authorize looks at the signature first, so that a forged token costs no
// question to the log.
func (t RunTokens) Authorize(ctx context.Context, token string) (Run, error) {
	claims, err := runtoken.Verify(t.Key, token, t.Now())
	if errors.Is(err, runtoken.ErrKey) {
		return Run{}, err
	}
	if err != nil {
		return Run{}, fmt.Errorf("%w: %w", ErrUnauthorized, err)
	}
	if err := t.StillRunning(ctx, claims.Run, claims.Epoch); err != nil {
		return Run{}, fmt.Errorf("run %s epoch %d: %w", claims.Run, claims.Epoch, err)
	}
	return Run{ID: claims.Run, Epoch: claims.Epoch}, nil
}

// authorize answers nothing about a token but that it is not accepted.
func (g *Gateway) authorize(r *http.Request) (Run, *problem) {
	token, p := bearer(r.Header)
	if p != nil {
		return Run{}, p
	}
	run, err := g.config.Authorize.Authorize(r.Context(), token)
	switch {
	case err == nil:
		return run, nil
	case errors.Is(err, ErrFenced):
		p = unauthorized(codeFenced, "This run has ended or another worker holds it.")
	case errors.Is(err, ErrUnauthorized):
		p = unauthorized(codeInvalidToken, "The token is not accepted: it is malformed, expired, or signed with another key.")
	default:
		p = &problem{
			status: http.StatusServiceUnavailable, code: codeAuthDown, kind: "api_error", retryable: true,
			message: "The token could not be checked now. Try again.",
		}
	}
	p.cause = err
	return Run{}, p
}

// bearer prefers Authorization, because clients that send both put a constant
// into x-api-key.
func bearer(h http.Header) (string, *problem) {
	if value := h.Get("Authorization"); value != "" {
		scheme, token, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(token) == "" {
			return "", unauthorized(codeMissingToken, "Authorization must be: Bearer TOKEN.")
		}
		return strings.TrimSpace(token), nil
	}
	if token := h.Get("X-Api-Key"); token != "" {
		return token, nil
	}
	return "", unauthorized(codeMissingToken, "Send a run token as Authorization: Bearer TOKEN, or as x-api-key.")
}

func unauthorized(code, message string) *problem {
	return &problem{status: http.StatusUnauthorized, code: code, kind: "authentication_error", message: message}
}
