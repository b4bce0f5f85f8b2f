package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// The stable codes of errors and outcomes. docs/models.md explains each.
const (
	codeOK = "ok"

	codeMissingToken  = "missing_token"
	codeInvalidToken  = "invalid_token"
	codeFenced        = "run_fenced"
	codeAuthDown      = "authorization_unavailable"
	codeInvalid       = "invalid_request"
	codeTooLarge      = "request_too_large"
	codeSlowRequest   = "request_timeout"
	codeEncoding      = "unsupported_encoding"
	codeUnknownModel  = "unknown_model"
	codeUnknownPath   = "unknown_path"
	codeMethod        = "method_not_allowed"
	codeCallerGone    = "caller_gone"
	codeInternalError = "internal_error"

	codeRateLimited     = "upstream_rate_limited"
	codeOverloaded      = "upstream_overloaded"
	codeUpstreamFailed  = "upstream_error"
	codeUnreachable     = "upstream_unreachable"
	codeUpstreamTimeout = "upstream_timeout"
	codeUpstreamCut     = "upstream_cut"
	codeUpstreamInvalid = "upstream_invalid_response"
	codeUpstreamLarge   = "upstream_response_too_large"
	codeUpstreamRefused = "upstream_refused_request"
	codeUpstreamKey     = "upstream_refused_key"
	codeUpstreamMissing = "upstream_not_found"
	codeRedirect        = "upstream_redirect"
	codeKeyEcho         = "upstream_key_echo"
)

// problem is an error as the caller sees it: an OpenAI-style error object with
// a stable code. Everything in it but cause goes to the caller.
type problem struct {
	status         int
	code           string
	kind           string // OpenAI's "type"
	param          string
	message        string
	retryable      bool          // the caller may send it again
	resend         bool          // so may the gateway, by itself
	retryAfter     time.Duration // zero: the upstream named none
	upstreamStatus int           // zero: none was received
	upstreamCode   string
	cause          error // for the log alone
}

func (p *problem) Error() string {
	if p.cause != nil {
		return fmt.Sprintf("%s: %s: %v", p.code, p.message, p.cause)
	}
	return p.code + ": " + p.message
}

func (p *problem) Unwrap() error { return p.cause }

func invalid(param, format string, args ...any) *problem {
	return &problem{
		status: http.StatusBadRequest, code: codeInvalid, kind: "invalid_request_error",
		param: param, message: fmt.Sprintf(format, args...),
	}
}

// upstreamProblem is a problem of the provider's side.
func upstreamProblem(status int, code string, retryable bool, format string, args ...any) *problem {
	kind := "upstream_error"
	if status == http.StatusTooManyRequests {
		kind = "rate_limit_error"
	}
	return &problem{status: status, code: code, kind: kind, retryable: retryable, message: fmt.Sprintf(format, args...)}
}

type errorBody struct {
	Message        string  `json:"message"`
	Type           string  `json:"type"`
	Param          *string `json:"param"`
	Code           string  `json:"code"`
	Retryable      bool    `json:"retryable"`
	UpstreamStatus *int    `json:"upstream_status,omitempty"`
	UpstreamCode   *string `json:"upstream_code,omitempty"`
	RequestID      string  `json:"request_id"`
}

func (p *problem) body(requestID string) []byte {
	e := errorBody{
		Message: p.message, Type: p.kind, Param: orNull(p.param), Code: p.code,
		Retryable: p.retryable, UpstreamCode: orNull(p.upstreamCode), RequestID: requestID,
	}
	if p.upstreamStatus != 0 {
		e.UpstreamStatus = &p.upstreamStatus
	}
	// Strings, booleans and integers cannot fail to encode.
	raw, _ := json.Marshal(map[string]errorBody{"error": e})
	return raw
}

// headers tells retrying clients what the body tells people: x-should-retry is
// what the official OpenAI clients look at before the status.
func (p *problem) headers(h http.Header) {
	h.Set("X-Should-Retry", strconv.FormatBool(p.retryable))
	if p.retryAfter > 0 {
		seconds := int64((p.retryAfter + time.Second - 1) / time.Second)
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if p.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="cairn gateway"`)
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
