// Package gateway is the model gateway: the only holder of provider keys. It
// takes OpenAI Chat requests from runs, sends each to the upstream its model
// names, and passes the answer on as it comes. It may import the standard
// library, golang.org/x, db and domain; never worker or sandbox.
//
// One call:
//
//	received -> authorised -> parsed -> asked -> answering -> ended ok
//	    |           |           |         |          |
//	    |          401         400   4xx, 5xx    error event, closed without
//	    |                     404,413  (JSON)    [DONE] (JSON if not streamed)
//	    '-- the caller goes away: the upstream is cancelled at any point
//
// From "asked" on the call is observed exactly once, whatever its end.
//
// Wire format: the public OpenAI Chat Completions reference and, for the event
// stream, the WHATWG HTML specification, section "Server-sent events".
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Run is who calls: one epoch of one run.
type Run struct {
	ID    string
	Epoch int64
}

// Authorizer turns the token of a request into the run it belongs to. Its
// errors are told apart by ErrUnauthorized and ErrFenced; any other means that
// it could not find out, and the caller is asked to try again.
type Authorizer interface {
	Authorize(ctx context.Context, token string) (Run, error)
}

// Upstream answers one request. It calls emit with each wire object in order:
// chat.completion.chunk objects when request.Stream is set, else exactly one
// chat.completion. It returns nil only after a complete answer. An error of
// emit ends the call and is returned.
type Upstream interface {
	Stream(ctx context.Context, request Request, emit func(Chunk) error) error
}

// Call is what is known about a call at its end. A nil pointer is unknown,
// never zero.
type Call struct {
	Run          Run
	RequestID    string
	Model        string // the name the caller used
	Upstream     string // "demo", or the provider's name for the model
	InputTokens  *int64
	OutputTokens *int64
	Duration     time.Duration
	FirstToken   *time.Duration // from the request to the first piece of a streamed answer
	Outcome      string         // "ok" or the code of the error, see docs/models.md
}

// Config is what a gateway is made of. Authorize and Log are required.
type Config struct {
	Authorize Authorizer
	Models    []Model                     // see LoadModels; the demo model is always there
	Observe   func(context.Context, Call) // once at the end of each call; may be nil
	Log       *slog.Logger
	DemoPause time.Duration // between the words of the demo model; zero for none
}

// DefaultDemoPause lets a person see that the answer is streamed.
const DefaultDemoPause = 30 * time.Millisecond

// Gateway is an http.Handler for the paths under /gateway/v1/. A middleware
// around it must keep http.ResponseController working (have Unwrap).
type Gateway struct {
	config    Config
	catalogue catalogue
	mux       *http.ServeMux

	callerTime time.Duration // for a caller to send its request, and to take each piece of the answer
}

const standardCallerTime = 30 * time.Second

// New refuses a configuration in which a call could go unauthorised or unlogged.
func New(config Config) (*Gateway, error) {
	if config.Authorize == nil || config.Log == nil {
		return nil, errors.New("gateway: Config.Authorize and Config.Log are required")
	}
	models, err := newCatalogue(config.Models, config.DemoPause)
	if err != nil {
		return nil, err
	}
	g := &Gateway{config: config, catalogue: models, mux: http.NewServeMux(), callerTime: standardCallerTime}
	g.mux.HandleFunc("POST /gateway/v1/chat/completions", g.handle(g.chat))
	g.mux.HandleFunc("/gateway/v1/chat/completions", g.handle(onlyMethod("POST")))
	g.mux.HandleFunc("GET /gateway/v1/models", g.handle(g.list))
	g.mux.HandleFunc("/gateway/v1/models", g.handle(onlyMethod("GET")))
	g.mux.HandleFunc("/", g.handle(unknownPath))
	return g, nil
}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

// Close drops idle connections to upstreams. Calls under way are not touched.
func (g *Gateway) Close() { g.catalogue.close() }
