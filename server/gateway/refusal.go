package gateway

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	maxRefusal  = 64 << 10 // bytes read of an error body
	maxQuote    = 500      // bytes of the provider's message passed on
	statusBusy  = 529      // "overloaded", used by several providers
	headerBytes = 64 << 10
)

// newClient follows no redirect, so that a key goes to the configured address
// and nowhere else, and takes no compressed answers, so that bounds are bounds
// and deltas are not held back. A proxy from the environment is used for https
// alone: through http it would read the key.
func newClient() *http.Client {
	transport := &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if r.URL.Scheme != "https" {
				return nil, nil
			}
			return http.ProxyFromEnvironment(r)
		},
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: headerBytes,
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        60 * time.Second,
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// refusal turns an answer that is not 200 into what the caller is told.
func (u *openAI) refusal(resp *http.Response) *problem {
	p := byStatus(resp.StatusCode)
	p.upstreamStatus, p.resend = resp.StatusCode, p.retryable
	p.retryAfter = readRetryAfter(resp.Header, time.Now())
	// What cannot be read of an error is not quoted; the status stands.
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err == nil && p.code != codeRedirect {
		u.quote(p, raw)
	}
	return p
}

// byStatus: what concerns the operator's configuration is a fault of the
// gateway's side (502), never a 401 that the caller would take for its own.
func byStatus(status int) *problem {
	switch {
	case status == http.StatusTooManyRequests:
		return upstreamProblem(status, codeRateLimited, true, "The model's server limits the rate of requests.")
	case status == statusBusy || status == http.StatusServiceUnavailable:
		return upstreamProblem(http.StatusServiceUnavailable, codeOverloaded, true, "The model's server is overloaded.")
	case status >= 500 || status == http.StatusRequestTimeout:
		return upstreamProblem(http.StatusBadGateway, codeUpstreamFailed, true, "The model's server failed with status %d.", status)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return upstreamProblem(http.StatusBadGateway, codeUpstreamKey, false, "The model's server does not accept the gateway's key (status %d). The operator must correct it.", status)
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return upstreamProblem(http.StatusBadGateway, codeUpstreamMissing, false, "The model's server knows no such address or model (status %d). The operator must correct base_url or model.", status)
	case status >= 300 && status < 400:
		return upstreamProblem(http.StatusBadGateway, codeRedirect, false, "The model's server redirects (status %d), which the gateway does not follow. The operator must correct base_url.", status)
	case status >= 400:
		return upstreamProblem(status, codeUpstreamRefused, false, "The model's server refused the request.")
	}
	return badAnswer("a status that is neither 200 nor an error")
}

// quote adds the provider's own words, without the key, to the message.
func (u *openAI) quote(p *problem, raw []byte) {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if clean, err := u.model.Key.redactJSON(raw); err == nil {
		raw = clean // JSON may spell the key with escapes; what is not JSON is redacted as text below
	}
	text := string(raw)
	if json.Unmarshal(raw, &body) == nil && isSet(body.Error) {
		fault := readFault(body.Error)
		text = fault.Message
		p.param = clip(u.model.Key.redactText(fault.Param), 200)
		p.upstreamCode = clip(u.model.Key.redactText(fault.code()), 100)
	}
	if text = clip(u.model.Key.redactText(text), maxQuote); text != "" {
		p.message += " It says: " + text
	}
}

// faultProblem is for an error object inside an answer with status 200.
func (u *openAI) faultProblem(f upstreamFault) *problem {
	p := upstreamProblem(http.StatusBadGateway, codeUpstreamFailed, true, "Server error: the model's server reported an error in its answer.")
	p.upstreamCode = clip(u.model.Key.redactText(f.code()), 100)
	if text := clip(u.model.Key.redactText(f.Message), maxQuote); text != "" {
		p.message += " It says: " + text
	}
	return p
}

// transportProblem: a connection that broke after the request was sent may have
// been answered and billed, so only what never reached the upstream is resent.
func (u *openAI) transportProblem(ctx context.Context, err error) *problem {
	if p := u.clockProblem(ctx); p != nil {
		return p
	}
	cause := plainCause(err)
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(cause, &cert):
		p := unreachable(cause, false)
		p.retryable = false
		return p
	case errors.As(cause, &op) && op.Op == "dial":
		return unreachable(cause, true)
	}
	p := upstreamProblem(http.StatusBadGateway, codeUpstreamCut, true, "The connection to the model's server broke before it answered.")
	p.cause = cause
	return p
}

// cut is for an answer that began and did not end. Inside a stream there is no
// status, and agents in the field decide by words of the message whether to try
// again: "connection error", "server error" and "timeout" are such words.
func (u *openAI) cut(ctx context.Context, err error) *problem {
	if p := u.clockProblem(ctx); p != nil {
		return p
	}
	p := upstreamProblem(http.StatusBadGateway, codeUpstreamCut, true, "Connection error: the model's server stopped in the middle of its answer.")
	p.cause = plainCause(err)
	return p
}

// clockProblem is nil unless one of our own clocks ended the call.
func (u *openAI) clockProblem(ctx context.Context) *problem {
	var p *problem
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSilent):
		p = upstreamProblem(http.StatusGatewayTimeout, codeUpstreamTimeout, true, "The model's server sent nothing for %v (idle_seconds).", u.model.Idle)
		p.cause = cause
	case errors.Is(cause, errTooLong):
		p = upstreamProblem(http.StatusGatewayTimeout, codeUpstreamTimeout, true, "The model's server did not finish within %v (timeout_seconds).", u.model.Timeout)
		p.cause = cause
	}
	return p
}

// unreachable does not name the address to the caller; the log has it in the cause.
func unreachable(cause error, resend bool) *problem {
	p := upstreamProblem(http.StatusBadGateway, codeUnreachable, true, "The model's server could not be reached.")
	p.cause, p.resend = cause, resend
	return p
}

// plainCause keeps errors of network and TLS for the log. Any other may quote
// what the upstream sent, which may be the prompt or the key.
func plainCause(err error) error {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &op):
		return op
	case errors.As(err, &cert):
		return cert
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return errors.New("the answer was not HTTP as it should be")
}
