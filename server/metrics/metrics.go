// Package metrics answers GET /metrics in the text format of Prometheus: what this process counts, and what the
// database says at the moment of asking. docs/operations/metrics.md lists every metric.
//
//	counted as it happens (observe.go, request.go) --+
//	                                                 +--> one registry --> GET /metrics, for this machine (local.go)
//	read when asked       (collect.go, ask.go) ------+
//
// Labels are of small, known sets: never an id, a name that a person gave, or content. What is not known is
// absent; none is zero.
//
// It may import db, domain, server/gateway, server/live and the Prometheus client.
package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cairn/db"
	"cairn/db/read"
	"cairn/server/live"
)

// log is what a meter asks of the event log.
type log interface {
	Stats() db.Stats
	ListenAlive() bool
	UnsequencedAge(ctx context.Context) (*time.Duration, error)
	Read() *read.Queries
}

// Options are what a meter reads.
type Options struct {
	DB      log
	Live    func() live.Stats // asked at each scrape
	Version string
	Log     *slog.Logger
}

// Meter counts for one server process.
type Meter struct {
	registry *prometheus.Registry
	log      *slog.Logger

	requests     *prometheus.CounterVec
	requestTook  *prometheus.HistogramVec
	calls        *prometheus.CounterVec
	callTook     *prometheus.HistogramVec
	firstToken   *prometheus.HistogramVec
	tokens       *prometheus.CounterVec
	tokenUnknown *prometheus.CounterVec
	denials      *prometheus.CounterVec
	lag          prometheus.Histogram
}

// New makes a meter with everything at zero.
func New(o Options) *Meter {
	m := &Meter{
		registry: prometheus.NewRegistry(), log: o.Log,
		requests:     counter("cairn_http_requests_total", "HTTP requests that were answered. A WebSocket counts when it ends, as 1xx.", "route", "method", "status"),
		requestTook:  histogram("cairn_http_request_duration_seconds", "Time from a request's header to the end of its answer, without WebSockets.", requestBuckets, "route", "method"),
		calls:        counter("cairn_model_calls_total", "Model calls that ended.", "model", "outcome"),
		callTook:     histogram("cairn_model_call_duration_seconds", "Time from a model call to the end of its answer.", callBuckets, "model"),
		firstToken:   histogram("cairn_model_first_token_seconds", "Time from a model call to the first piece of a streamed answer.", callBuckets, "model"),
		tokens:       counter("cairn_model_tokens_total", "Tokens that providers reported.", "model", "direction"),
		tokenUnknown: counter("cairn_model_calls_without_usage_total", "Model calls that ended well without a report of their tokens.", "model"),
		denials:      counter("cairn_denials_total", "Refusals for want of a permission or a credential, by who was refused and the code.", "caller", "rule"),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "cairn_tailer_lag_seconds", Buckets: lagBuckets,
			Help: "Age of the newest event of each batch when it was handed to the sockets, by the clocks of two machines.",
		}),
	}
	m.registry.MustRegister(m.requests, m.requestTook, m.calls, m.callTook, m.firstToken, m.tokens, m.tokenUnknown, m.denials, m.lag,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newCollector(o))
	return m
}

// The buckets, in seconds.
var (
	requestBuckets = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}
	callBuckets    = []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	lagBuckets     = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}
)

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// Handler answers GET and HEAD of anybody who reaches it.
func (m *Meter) Handler() http.Handler {
	text := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelWarn), MaxRequestsInFlight: 4})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		text.ServeHTTP(w, r)
	})
	return mux
}
