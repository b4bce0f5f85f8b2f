// Package server is the process that the outside talks to: health, readiness and metrics, the REST interface with its
// sessions, the live sockets, and the model gateway.
//
//	starting --listen--> serving --drain--> draining --requests answered--> stopped
//
// It may import db, domain and its own sub-packages; never worker or sandbox.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"cairn/db"
	"cairn/server/api"
	"cairn/server/auth"
	"cairn/server/denial"
	"cairn/server/gateway"
	"cairn/server/live"
	"cairn/server/metrics"
	"cairn/server/portal"
	"cairn/server/proxy"
	"cairn/web"
)

// drainTime bounds how long requests under way may take once the server drains.
const drainTime = 20 * time.Second

// Options are what a server is made of.
type Options struct {
	DB        *db.DB
	Models    []gateway.Model
	Roots     []string // names of folders that runs may start from, as the workers offer them
	DemoPause time.Duration
	Limits    auth.Limits   // zero: the standard ones
	Proxies   proxy.Trusted // whose X-Forwarded-For and X-Forwarded-Proto are believed
	Version   string
	Log       *slog.Logger
	// DenialMinute is how often refusals are counted together; zero: a minute.
	DenialMinute time.Duration

	// Metrics, when not nil, is where alone /metrics is, for anybody who reaches it; else it is beside the
	// other routes, for this machine only. Serve closes it.
	Metrics net.Listener
}

// Server answers over HTTP.
type Server struct {
	options  Options
	gateway  *gateway.Gateway
	live     *live.Hub
	meter    *metrics.Meter
	denials  *denial.Recorder
	http     *http.Server
	draining atomic.Bool
}

// New puts the routes together. The live hub begins at the head that the log has now.
func New(ctx context.Context, o Options) (*Server, error) {
	s := &Server{options: o}
	s.meter = metrics.New(metrics.Options{DB: o.DB, Live: func() live.Stats { return s.live.Stats() }, Version: o.Version, Log: o.Log})
	var err error
	if s.gateway, err = newGateway(o, s.meter.ModelCall); err != nil {
		return nil, err
	}
	s.denials = denial.New(denial.Options{DB: o.DB, Log: o.Log, Minute: o.DenialMinute, Count: s.meter.Denial})
	signIn := auth.New(o.DB, o.Limits)
	if s.live, err = live.New(ctx, live.Config{DB: o.DB, Authenticate: watchers{signIn}, Log: o.Log, Lag: s.meter.Lag, Denied: s.deniedTopic}); err != nil {
		return nil, err
	}
	handler, err := s.routes(signIn)
	if err != nil {
		return nil, err
	}
	s.http = newHTTP(o.Proxies.Handler(handler), o.Log)
	return s, nil
}

// routes is everything that the server answers, counted.
func (s *Server) routes(signIn *auth.Auth) (http.Handler, error) {
	inner := http.NewServeMux()
	inner.HandleFunc("GET /healthz", s.health)
	inner.HandleFunc("GET /readyz", s.ready)
	a, err := api.New(api.Options{DB: s.options.DB, Auth: signIn, Models: s.gateway.Models(), Roots: s.options.Roots, Version: s.options.Version, Log: s.options.Log, Denials: s.denials}, inner)
	if err != nil {
		return nil, err
	}
	pages, err := portal.New(web.Dist())
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/gateway/v1/", s.gateway) // has its own form of errors, and tokens instead of cookies
	mux.Handle("GET /api/v1/live", s.live)
	if s.options.Metrics == nil {
		mux.Handle("/metrics", s.meter.Local(a.Handler()))
	}
	mux.Handle("/", beside(inner, pages, a.Handler()))
	return s.meter.Requests(func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		if pattern == "/" {
			_, pattern = inner.Handler(r)
		}
		return pattern
	}, mux), nil
}

// beside hands to the Portal what no route of the interface has and a page may have.
func beside(routes *http.ServeMux, pages *portal.Portal, programs http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := routes.Handler(r); pattern == "" && pages.Wants(r) {
			pages.ServeHTTP(w, r)
			return
		}
		programs.ServeHTTP(w, r)
	})
}

// Handler answers as Serve does, for tests that bring their own listener.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Serve answers on the listener until ctx ends, then drains: requests under way are answered.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(listener) }()
	// What accompanies the requests ends after them: sockets are told that this replica drains.
	beside, leave := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	parts.Go(func() { s.keepHouse(beside) })
	parts.Go(func() { s.live.Run(beside) })
	parts.Go(func() { s.serveMetrics(beside) })
	parts.Go(func() { s.denials.Run(beside) })
	defer parts.Wait()
	defer leave()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	drain, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	parts.Go(func() { s.live.Drain(drain) })
	err := shutdown(drain, s.http)
	s.gateway.Close()
	return err
}

func newHTTP(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
}

// shutdown answers the requests under way, until drain ends.
func shutdown(drain context.Context, h *http.Server) error {
	err := h.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("drain: requests were still under way after %v: %w", drainTime, h.Close())
	}
	return err
}

// health answers while the process lives.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"status": "ok"})
}

// readiness is the answer of /readyz. Unknown is null.
type readiness struct {
	Ready           bool     `json:"ready"`
	Draining        bool     `json:"draining"`
	Database        string   `json:"database"` // "ok" or what is wrong
	Listen          bool     `json:"listen"`   // notifications arrive; without them readers poll every 250 ms
	UnsequencedAgeS *float64 `json:"unsequenced_age_seconds"`
}

// ready answers 200 when this process should be given work, else 503 with the reasons.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	state := readiness{Draining: s.draining.Load(), Database: "ok", Listen: s.options.DB.ListenAlive()}
	age, err := s.options.DB.UnsequencedAge(ctx)
	switch {
	case err != nil:
		s.options.Log.WarnContext(ctx, "not ready", "error", err)
		state.Database = "unavailable"
	case age != nil:
		seconds := age.Seconds()
		state.UnsequencedAgeS = &seconds
	}
	state.Ready = err == nil && !state.Draining && state.Listen
	status := http.StatusOK
	if !state.Ready {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, state)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}
