package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"cairn/db"
	"cairn/domain/fault"
	"cairn/server/auth"
)

// Problem is a refusal as RFC 9457 has it. It never repeats a value that was sent: it may be a secret.
type Problem struct {
	Type      string          `json:"type" doc:"Always about:blank: code says what it is."`
	Title     string          `json:"title" doc:"The status in words."`
	Status    int             `json:"status"`
	Detail    string          `json:"detail" doc:"For people: which rule refused, and what to do."`
	Code      string          `json:"code" doc:"Stable. docs/reference/api.md lists them."`
	RequestID string          `json:"request_id" doc:"Also in the header X-Request-Id, and in the server's log."`
	Errors    []ProblemDetail `json:"errors,omitempty" nullable:"false" doc:"Where the input breaks a rule."`

	after string // Retry-After, in seconds
}

// ProblemDetail is one place where the input breaks a rule.
type ProblemDetail struct {
	Location string `json:"location" doc:"Like body.title or query.limit."`
	Message  string `json:"message"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// huma keeps its maker of errors in package variables. Cairn has one form of error, so both are set once.
func init() {
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		return problemOf(context.Background(), status, detail, errs)
	}
	huma.NewErrorWithContext = func(hc huma.Context, status int, detail string, errs ...error) huma.StatusError {
		p := problemOf(hc.Context(), status, detail, errs)
		if p.after != "" {
			hc.SetHeader("Retry-After", p.after)
		}
		return p
	}
}

// codes are what a status means when nothing more specific is known.
var codes = map[int]string{
	http.StatusBadRequest: "malformed_request", http.StatusUnauthorized: "session_required", http.StatusForbidden: "denied",
	http.StatusNotFound: "not_found", http.StatusMethodNotAllowed: "method_not_allowed", http.StatusRequestTimeout: "request_timeout",
	http.StatusConflict: "conflict", http.StatusRequestEntityTooLarge: "request_too_large", http.StatusUnsupportedMediaType: "unsupported_media_type",
	http.StatusUnprocessableEntity: "invalid_request", http.StatusTooManyRequests: "too_many_requests",
	http.StatusInternalServerError: "internal_error", http.StatusServiceUnavailable: "unavailable",
}

func newProblem(ctx context.Context, status int, code, detail string) *Problem {
	if code == "" {
		code = codes[status]
	}
	if code == "" {
		code = "error_" + strconv.Itoa(status)
	}
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code, RequestID: callOf(ctx).id}
}

// problemOf turns whatever went wrong into the one form. What is nobody's business goes to the log instead.
func problemOf(ctx context.Context, status int, detail string, errs []error) *Problem {
	cause := errors.Join(errs...)
	if f, ok := errors.AsType[*fault.Fault](cause); ok {
		return problemOfFault(ctx, f, cause)
	}
	if status >= http.StatusInternalServerError {
		return problemOfFailure(ctx, cause)
	}
	p := newProblem(ctx, status, "", detail)
	for _, err := range errs {
		if d, ok := err.(huma.ErrorDetailer); ok {
			p.Errors = append(p.Errors, ProblemDetail{Location: d.ErrorDetail().Location, Message: d.ErrorDetail().Message})
		} else if err != nil {
			p.Errors = append(p.Errors, ProblemDetail{Location: "body", Message: err.Error()})
		}
	}
	return p
}

// statuses map kinds of faults; statusOfCode has the codes that say more than their kind.
var (
	statuses = map[fault.Kind]int{
		fault.Invalid: http.StatusUnprocessableEntity, fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
		fault.Denied: http.StatusForbidden, fault.Exhausted: http.StatusTooManyRequests, fault.Unavailable: http.StatusServiceUnavailable,
	}
	statusOfCode = map[string]int{
		"login_refused": http.StatusUnauthorized, codeUnknownParameter: http.StatusBadRequest, codeInvalidCursor: http.StatusBadRequest,
	}
)

// locations are those of fields that the interface names or places otherwise.
var locations = map[string]string{"account": "body.account_id", "q": "query.q"}

func problemOfFault(ctx context.Context, f *fault.Fault, cause error) *Problem {
	status := statuses[f.Kind]
	if special, ok := statusOfCode[f.Code]; ok {
		status = special
	}
	if status == http.StatusServiceUnavailable {
		return problemOfFailure(ctx, cause)
	}
	p := newProblem(ctx, status, f.Code, f.Message)
	if f.Field != "" {
		location, special := locations[f.Field]
		if !special {
			location = "body." + f.Field
		}
		p.Errors = []ProblemDetail{{Location: location, Message: f.Message}}
	}
	if limited, ok := errors.AsType[*auth.Limited](cause); ok {
		p.after = strconv.FormatInt(int64(limited.After.Seconds()), 10)
	}
	return p
}

// problemOfFailure is for what the caller cannot mend. The cause may name addresses and files.
func problemOfFailure(ctx context.Context, cause error) *Problem {
	c := callOf(ctx)
	if fault.Is(cause, fault.Unavailable) || db.IsUnreachable(cause) || errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		if !errors.Is(cause, context.Canceled) {
			c.log.WarnContext(ctx, "unavailable", "request_id", c.id, "error", cause)
		}
		code := ""
		if f, ok := errors.AsType[*fault.Fault](cause); ok {
			code = f.Code
		}
		p := newProblem(ctx, http.StatusServiceUnavailable, code, "A part that is needed does not answer now. The same request may work in a moment; with the same Idempotency-Key it acts once.")
		p.after = "1"
		return p
	}
	c.log.ErrorContext(ctx, "request failed", "request_id", c.id, "error", cause)
	return newProblem(ctx, http.StatusInternalServerError, "", "Something went wrong here, not in your request. The server's log has it under request_id.")
}

// write sends a problem from outside of huma.
func (p *Problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", p.ContentType(""))
	if p.after != "" {
		w.Header().Set("Retry-After", p.after)
	}
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}
