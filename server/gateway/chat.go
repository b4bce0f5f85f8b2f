package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// call is one request from its arrival to its line in the log.
type call struct {
	id       string
	began    time.Time
	reply    *reply
	run      Run
	model    offer
	asked    bool // reached an upstream: to be observed
	usage    usage
	first    *time.Duration
	outcome  string
	upstream int // the status of an upstream that refused; zero: none
	cause    error
}

type handler func(c *call, w http.ResponseWriter, r *http.Request) *problem

// handle is the edge: it alone answers errors, observes and logs.
func (g *Gateway) handle(next handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{id: newRequestID(), began: time.Now(), reply: newReply(w, g.callerTime), outcome: codeInternalError}
		w.Header().Set("X-Request-Id", c.id)
		defer g.end(r, c) // deferred: a panic is observed and logged too
		p := next(c, w, r)
		if p == nil {
			c.outcome = codeOK
			return
		}
		// A body that could not be read cancels the context as well, so ask only after it.
		if c.asked && r.Context().Err() != nil {
			p = callerGone(context.Cause(r.Context()))
		}
		c.outcome, c.cause, c.upstream = p.code, p.cause, p.upstreamStatus
		// Also to a caller who seems gone: should someone be there, an empty 200 would lie.
		if err := c.reply.fail(p, c.id); err != nil {
			c.cause = errors.Join(c.cause, err)
		}
	}
}

// chat is POST /gateway/v1/chat/completions.
func (g *Gateway) chat(c *call, w http.ResponseWriter, r *http.Request) *problem {
	run, p := g.authorize(r)
	if p != nil {
		return p
	}
	c.run = run
	request, p := readRequest(w, r, g.callerTime)
	if p != nil {
		return p
	}
	if c.model, p = g.catalogue.pick(request.Model); p != nil {
		return p
	}
	c.asked = true
	err := c.model.upstream.Stream(r.Context(), request, func(chunk Chunk) error { return c.emit(request, chunk) })
	if err == nil && request.Stream {
		err = asCallerGone(c.reply.done())
	}
	return asProblem(err)
}

func (c *call) emit(request Request, chunk Chunk) error {
	c.count(chunk)
	if !request.Stream {
		return asCallerGone(c.reply.send(http.StatusOK, "application/json", chunk.Raw))
	}
	if chunk.usageOnly && !request.WantUsage {
		return nil // the gateway asked for it on its own account
	}
	if chunk.content && c.first == nil {
		after := time.Since(c.began)
		c.first = &after
	}
	return asCallerGone(c.reply.chunk(chunk.Raw))
}

// count keeps the last numbers seen: some providers send running totals.
func (c *call) count(chunk Chunk) {
	if chunk.usage.input != nil {
		c.usage.input = chunk.usage.input
	}
	if chunk.usage.output != nil {
		c.usage.output = chunk.usage.output
	}
}

func asCallerGone(err error) error {
	if err == nil {
		return nil
	}
	return callerGone(err)
}

func asProblem(err error) *problem {
	var p *problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return p
	}
	return &problem{
		status: http.StatusInternalServerError, code: codeInternalError, kind: "api_error",
		message: "The gateway failed. The request id is in its log.", cause: err,
	}
}

func (g *Gateway) end(r *http.Request, c *call) {
	took := time.Since(c.began)
	if c.asked && g.config.Observe != nil {
		// The caller may be gone; what happened is recorded all the same.
		g.config.Observe(context.WithoutCancel(r.Context()), Call{
			Run: c.run, RequestID: c.id, Model: c.model.name,
			Upstream: c.model.real, InputTokens: c.usage.input, OutputTokens: c.usage.output,
			Duration: took, FirstToken: c.first, Outcome: c.outcome,
		})
	}
	g.log(r, c, took)
}

// log writes no header and no body: what runs ask and get is sealed content.
func (g *Gateway) log(r *http.Request, c *call, took time.Duration) {
	attrs := []slog.Attr{
		slog.String("request_id", c.id), slog.String("method", r.Method), slog.String("path", clip(r.URL.Path, 200)),
		slog.Int("status", c.reply.status), slog.String("outcome", c.outcome), slog.Duration("took", took),
	}
	if c.run.ID != "" {
		attrs = append(attrs, slog.String("run", c.run.ID), slog.Int64("epoch", c.run.Epoch))
	}
	if c.asked {
		attrs = append(attrs, slog.String("model", c.model.name))
		attrs = appendCount(attrs, "input_tokens", c.usage.input)
		attrs = appendCount(attrs, "output_tokens", c.usage.output)
	}
	if c.upstream != 0 {
		attrs = append(attrs, slog.Int("upstream_status", c.upstream))
	}
	level := slog.LevelInfo
	if c.cause != nil {
		attrs = append(attrs, slog.String("cause", c.cause.Error()))
	}
	if c.outcome != codeOK && c.outcome != codeCallerGone {
		level = slog.LevelWarn
	}
	g.config.Log.LogAttrs(context.WithoutCancel(r.Context()), level, "gateway call", attrs...)
}

// appendCount leaves an unknown count out.
func appendCount(attrs []slog.Attr, name string, n *int64) []slog.Attr {
	if n == nil {
		return attrs
	}
	return append(attrs, slog.Int64(name, *n))
}

func onlyMethod(method string) handler {
	return func(c *call, w http.ResponseWriter, _ *http.Request) *problem {
		w.Header().Set("Allow", method)
		return &problem{status: http.StatusMethodNotAllowed, code: codeMethod, kind: "invalid_request_error", message: "Use " + method + " here."}
	}
}

func unknownPath(*call, http.ResponseWriter, *http.Request) *problem {
	return &problem{
		status: http.StatusNotFound, code: codeUnknownPath, kind: "invalid_request_error",
		message: "There is POST /gateway/v1/chat/completions and GET /gateway/v1/models.",
	}
}

func newRequestID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails, see crypto/rand
	return "req_" + hex.EncodeToString(id[:])
}

// clip cuts a text for people to at most n bytes at a whole character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
