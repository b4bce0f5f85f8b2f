// Package api is the REST interface under /api/v1, its OpenAPI document and its page for people.
//
//	request -> id -> headers -> same origin? -> session -> body, bounded -> route -> session needed?
//	        -> parameters and body as the document says -> membership -> read, or db.Execute -> answer or problem
//
// Reads come from the projections, and the log where it is asked for; the only writes are commands with the
// account as the actor, and credentials. Every refusal is a problem of RFC 9457 with a stable code.
//
// It may import db, domain, server/auth, huma and the standard library.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"cairn/db"
	"cairn/server/auth"
)

// Prefix is where the routes are.
const Prefix = "/api/v1"

// maxBody is the largest request, in bytes: a message or a prompt of 1 MiB, every byte escaped.
const maxBody = 8 << 20

// Options are what the interface is made of.
type Options struct {
	DB      *db.DB
	Auth    *auth.Auth
	Models  []string // names that agents and messages may use
	Roots   []string // names of folders that runs may start from; workers know where they are
	Version string   // of Cairn
	Log     *slog.Logger
}

// API is the interface.
type API struct {
	Options
	huma    huma.API
	mux     *http.ServeMux
	handler http.Handler
}

// New puts the routes on the mux, which may have others, and answers all of them through Handler.
func New(o Options, mux *http.ServeMux) (*API, error) {
	a := &API{Options: o, mux: mux}
	config := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI:    "3.1.0",
			Info:       &huma.Info{Title: "Cairn", Version: o.Version, Description: about},
			Components: &huma.Components{Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)},
		},
		Formats:       map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: "application/json",
	}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		sessionScheme: {Type: "apiKey", In: "cookie", Name: "__Host-cairn_session", Description: "What POST /login sets. Over plain HTTP on the own machine its name is cairn_session."},
	}
	a.huma = humago.New(mux, config)
	a.huma.UseMiddleware(a.requireSession, a.refuseUnknownQuery)
	for _, routes := range []func(){
		a.loginRoutes, a.meRoutes, a.spaceRoutes, a.membershipRoutes, a.agentRoutes, a.conversationRoutes, a.messageRoutes,
		a.taskRoutes, a.runRoutes, a.eventRoutes, a.modelRoutes, a.fileRoutes, a.sourceRoutes, a.changesRoutes,
	} {
		routes()
	}
	if err := a.serveDocument(); err != nil {
		return nil, err
	}
	a.handler = a.chain()
	return a, nil
}

// Handler answers every route of the mux.
func (a *API) Handler() http.Handler { return a.handler }

// Document is the OpenAPI document.
func (a *API) Document() *huma.OpenAPI { return a.huma.OpenAPI() }

const about = "Errors are problems of RFC 9457 with a stable `code`. Every POST that appends to the log takes an `Idempotency-Key`: the same key and " +
	"request get the first answer again. Lists are newest first; `cursor` is opaque. Unknown query parameters answer 400. Times are RFC 3339, UTC. " +
	"What was erased, and what is not known, is null."

const sessionScheme = "session"

// route begins an operation: "GET /spaces" and what it is for. The id is noun-first.
func route(pattern, id, summary string) huma.Operation {
	method, path, _ := strings.Cut(pattern, " ")
	noun, _, _ := strings.Cut(id, "-")
	op := huma.Operation{
		Method: method, Path: Prefix + path, OperationID: id, Summary: summary, Tags: []string{noun}, MaxBodyBytes: maxBody + 1,
		Security: []map[string][]string{{sessionScheme: {}}},
		Errors:   []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusUnprocessableEntity, http.StatusServiceUnavailable},
	}
	if strings.Contains(path, "{") {
		op.Errors = append(op.Errors, http.StatusNotFound)
	}
	if method != http.MethodGet {
		op.Errors = append(op.Errors, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusTooManyRequests)
	}
	return op
}

// withStatus is for routes whose good answer is another one than 200 or 204.
func withStatus(op huma.Operation, status int) huma.Operation {
	op.DefaultStatus = status
	return op
}

func register[I, O any](a *API, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	huma.Register(a.huma, op, handle)
}

// answer is an output with a body.
type answer[T any] struct{ Body T }

func reply[T any](body T) *answer[T] { return &answer[T]{Body: body} }
