package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"cairn/db"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// call is what is known about one request.
type call struct {
	id      string
	request *http.Request
	session *db.Session // nil: nobody signed in
	log     *slog.Logger
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{log: slog.Default()}
}

// account is who calls; only for routes that need a session.
func account(ctx context.Context) event.ID { return callOf(ctx).session.Account }

// chain is what every request passes before its route.
func (a *API) chain() http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		newProblem(r.Context(), http.StatusForbidden, "cross_origin", "This request comes from a page of another origin: only pages of this server may change anything here.").write(w)
	}))
	routed := origin.Handler(a.identified(a.bounded(http.HandlerFunc(a.routed))))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{id: requestID(), log: a.Log}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		c.request = r
		secure(w, r)
		w.Header().Set("X-Request-Id", c.id)
		defer a.recovered(w, r)
		routed.ServeHTTP(w, r)
	})
}

func requestID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return ""
	}
	return id.String()
}

// secure sets what a browser should hold against pages of this server. Answers are data: nothing in them may run.
func secure(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

func (a *API) recovered(w http.ResponseWriter, r *http.Request) {
	switch cause := recover(); {
	case cause == nil:
	case cause == http.ErrAbortHandler:
		panic(cause)
	default:
		problemOfFailure(r.Context(), fmt.Errorf("panic: %v\n%s", cause, debug.Stack())).write(w)
	}
}

// identified finds the session.
func (a *API) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, Prefix+"/") {
			session, err := a.Auth.Session(r)
			if err != nil {
				problemOf(r.Context(), http.StatusInternalServerError, "", []error{err}).write(w)
				return
			}
			callOf(r.Context()).session = session
		}
		next.ServeHTTP(w, r)
	})
}

// What a request may take: strangers get little.
const (
	strangerBody = 16 << 10
	smallBody    = 1 << 20
	bodyTime     = 30 * time.Second
)

// largeBodies are the ends of paths whose requests hold a message or a prompt of up to 1 MiB.
var largeBodies = []string{"/messages", "/tasks", "/runs"}

// bounded reads the body before anything looks at it, so that a bad transfer is the sender's fault. Only that of an
// upload is left to its route, which keeps none of it.
func (a *API) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		if isUpload(r) {
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime))
			r.Body = http.MaxBytesReader(w, r.Body, uploadBody)
			next.ServeHTTP(w, r)
			http.NewResponseController(w).SetReadDeadline(time.Time{})
			return
		}
		limit := int64(strangerBody)
		if callOf(r.Context()).session != nil {
			limit = smallBody
			if slices.ContainsFunc(largeBodies, func(end string) bool { return strings.HasSuffix(r.URL.Path, end) }) {
				limit = maxBody
			}
		}
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // a recorder in a test has none
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		if err != nil {
			bodyProblem(r.Context(), err).write(w)
			return
		}
		http.NewResponseController(w).SetReadDeadline(time.Time{})
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func bodyProblem(ctx context.Context, err error) *Problem {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return newProblem(ctx, http.StatusRequestEntityTooLarge, "", fmt.Sprintf("The body is larger than %d bytes: send less.", large.Limit))
	}
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() {
		return newProblem(ctx, http.StatusRequestTimeout, "", fmt.Sprintf("The body did not come within %v: send it again.", bodyTime))
	}
	return newProblem(ctx, http.StatusBadRequest, "", "The body could not be read to its end: send it again.")
}

// routed hands the request to its route, and says in our form when there is none.
func (a *API) routed(w http.ResponseWriter, r *http.Request) {
	handler, pattern := a.mux.Handler(r)
	if pattern != "" {
		a.mux.ServeHTTP(w, r)
		return
	}
	told := &refusal{header: http.Header{}}
	handler.ServeHTTP(told, r)
	if allow := told.header.Get("Allow"); told.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", allow)
		newProblem(r.Context(), told.status, "", fmt.Sprintf("%s does not exist here, there is: %s.", r.Method, allow)).write(w)
		return
	}
	newProblem(r.Context(), http.StatusNotFound, "route_not_found", "There is nothing at this path: /openapi.json lists what there is.").write(w)
}

// refusal hears what the mux would say, without its text.
type refusal struct {
	header http.Header
	status int
}

func (r *refusal) Header() http.Header            { return r.header }
func (r *refusal) Write(text []byte) (int, error) { return len(text), nil }
func (r *refusal) WriteHeader(status int)         { r.status = status }

// requireSession turns strangers away from routes that need to know who calls.
func (a *API) requireSession(hc huma.Context, next func(huma.Context)) {
	if len(hc.Operation().Security) > 0 && callOf(hc.Context()).session == nil {
		huma.WriteErr(a.huma, hc, http.StatusUnauthorized, "Sign in first: POST /api/v1/login sets a cookie. A session ends 30 days after its last use, by logout, and when it is revoked.")
		return
	}
	next(hc)
}

const codeUnknownParameter = "unknown_parameter"

// refuseUnknownQuery lets no parameter pass that would have no effect.
func (a *API) refuseUnknownQuery(hc huma.Context, next func(huma.Context)) {
	known := map[string]bool{}
	for _, p := range hc.Operation().Parameters {
		known[p.Name] = known[p.Name] || p.In == "query"
	}
	u := hc.URL()
	for name, values := range u.Query() {
		if !known[name] || len(values) != 1 {
			huma.WriteErr(a.huma, hc, http.StatusBadRequest, "", fault.New(fault.Invalid, codeUnknownParameter,
				"the query parameter %.40q does not exist here, or is there twice: leave it out", name))
			return
		}
	}
	next(hc)
}
