package egress

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// serveInner answers one request inside of an intercepted connection.
func (p *Proxy) serveInner(w http.ResponseWriter, req *http.Request) {
	if !p.begin() {
		panic(http.ErrAbortHandler)
	}
	defer p.work.Done()
	to, _ := req.Context().Value(routeKey{}).(*route)
	path := req.URL.EscapedPath()
	d := Decision{Host: to.host, Port: to.port, Method: methodName(req.Method), Path: &path}
	host, port, ok := authority(req.Host, 443)
	if ok {
		d.Request = &host
	}
	if !ok || host != to.host || port != to.port {
		p.deny(w, d, refuse(ReasonHostMismatch, "the connection is to %s:%d, the request is for another host", to.host, to.port))
		return
	}
	p.forward(w, req, to, d)
}

// plain answers a request for http:// that came without TLS.
func (p *Proxy) plain(w http.ResponseWriter, req *http.Request) {
	path := req.URL.EscapedPath()
	d := Decision{Method: methodName(req.Method), Path: &path}
	if req.URL.Scheme != "http" || req.URL.User != nil {
		p.deny(w, d, refuse(ReasonRequest, "this is a proxy: want an absolute http:// address without credentials, or CONNECT"))
		return
	}
	host, port, ok := authority(req.URL.Host, 80)
	if !ok {
		p.deny(w, d, refuse(ReasonInvalidHost, "want a name or an address"))
		return
	}
	d.Host, d.Port, d.Request = host, port, &host
	to := &route{host: host, port: port, plain: true}
	if _, r, _ := p.judge(req, to); r != nil { // before its name is resolved: a look-up tells somebody something
		p.deny(w, d, r)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), p.limits.Handshake)
	defer cancel()
	var err error
	to.addrs, err = resolve(ctx, host)
	if r, is := errors.AsType[*refusal](err); is {
		p.deny(w, d, r)
		return
	}
	to.http = p.transport(to)
	defer to.http.CloseIdleConnections()
	p.forward(w, req, to, d)
}

func (p *Proxy) judge(req *http.Request, to *route) (rule string, r *refusal, read bool) {
	rule, reason, read := p.policy.request(to.host, to.port, to.plain, req.Method, req.URL.EscapedPath())
	switch {
	case reason != "":
		return "", refuse(reason, "%s %s:%d%s is not among what tier %s reaches; the agent's egress rules would have to list it",
			shown(req.Method), to.host, to.port, shown(req.URL.EscapedPath()), p.policy.tier), false
	case req.Header.Get("Upgrade") != "":
		return "", refuse(ReasonUpgrade, "a change of protocol cannot be judged; a rule with tunnel passes the connection through"), false
	case read && (req.ContentLength != 0 || len(req.TransferEncoding) > 0):
		return "", refuse(ReasonBody, "the rules for %s only let read, and this request has a body", to.host), false
	}
	return rule, nil, read
}

// forward judges, records, sends and answers one request.
func (p *Proxy) forward(w http.ResponseWriter, req *http.Request, to *route, d Decision) {
	rule, r, _ := p.judge(req, to)
	if r != nil {
		p.deny(w, d, r)
		return
	}
	out := p.outgoing(w, req, to)
	secret := !to.plain && p.policy.injects(to.host, to.port)
	if secret {
		d.Inject = p.inject(out, to)
	}
	d.Allowed, d.Rule = true, rule
	p.ledger.record(d)
	answer, err := to.http.RoundTrip(out)
	if err != nil {
		w.Header().Set("X-Cairn-Egress", "failed")
		http.Error(w, "cairn egress: "+to.host+" cannot be reached: "+p.mask.String(reachError(err)), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 {
		p.deny(w, d, refuse(ReasonUpgrade, "%s changed the protocol unasked", to.host))
		return
	}
	if secret && !identity(answer.Header) {
		p.deny(w, d, refuse(ReasonEncoded, "%s compressed its answer although it was asked not to: it cannot be searched for the secret", to.host))
		return
	}
	p.answer(w, answer, secret)
}

// reachError leaves the worker's own addresses out.
func reachError(err error) string {
	if op, is := errors.AsType[*net.OpError](err); is {
		return op.Err.Error()
	}
	return err.Error()
}

// outgoing copies what is the request's own, without what is about the client's connection.
func (p *Proxy) outgoing(w http.ResponseWriter, req *http.Request, to *route) *http.Request {
	scheme, defaultPort := "https", 443
	if to.plain {
		scheme, defaultPort = "http", 80
	}
	host := to.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if to.port != defaultPort {
		host += ":" + strconv.Itoa(to.port)
	}
	out := req.Clone(req.Context())
	out.RequestURI, out.Host, out.Close = "", host, false
	out.URL = &url.URL{Scheme: scheme, Host: host, Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery}
	out.Trailer = nil
	dropHops(out.Header)
	out.Header.Del("Expect")
	if len(out.Header["User-Agent"]) == 0 {
		out.Header["User-Agent"] = nil // none of ours in its place
	}
	out.Body = &timedBody{body: req.Body, control: http.NewResponseController(w), idle: p.limits.Idle}
	if req.ContentLength == 0 {
		out.Body = http.NoBody
	}
	return out
}

// hops are headers of one connection (RFC 9110, 7.6.1).
var hops = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Alt-Svc"}

func dropHops(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hops {
		h.Del(name)
	}
}

// inject takes the client's own credentials out, whether or not a rule puts others in: this host gets none but
// those of the rules. A range would let a client fetch a secret in parts that no search finds.
func (p *Proxy) inject(out *http.Request, to *route) bool {
	for name := range out.Header {
		if isCredential(name) {
			out.Header.Del(name)
		}
	}
	for _, j := range p.policy.injections {
		out.Header.Del(j.Header)
	}
	for _, name := range []string{"Range", "If-Range"} {
		out.Header.Del(name)
	}
	out.Header.Set("Accept-Encoding", "identity")
	j, ok := p.policy.injection(to.host, to.port, out.Method, out.URL.EscapedPath())
	if !ok {
		return false
	}
	value := j.Prefix + p.values[j.Secret]
	if j.Basic != "" {
		value = "Basic " + base64.StdEncoding.EncodeToString([]byte(j.Basic+":"+p.values[j.Secret]))
	}
	out.Header.Set(j.Header, value)
	return true
}

func identity(h http.Header) bool {
	for _, v := range h.Values("Content-Encoding") {
		if v = strings.ToLower(strings.TrimSpace(v)); v != "" && v != "identity" {
			return false
		}
	}
	return true
}

// answer passes the response on, each part as it arrives.
func (p *Proxy) answer(w http.ResponseWriter, answer *http.Response, secret bool) {
	dropHops(answer.Header)
	if secret {
		answer.Header.Del("Set-Cookie") // a session of the secret's owner
	}
	for name, values := range answer.Header {
		for _, v := range values {
			if secret {
				name, v = p.mask.String(name), p.mask.String(v)
			}
			w.Header().Add(name, v)
		}
	}
	control := http.NewResponseController(w)
	live := &liveWriter{w: w, control: control, idle: p.limits.Idle}
	_ = control.SetWriteDeadline(time.Now().Add(p.limits.Idle))
	w.WriteHeader(answer.StatusCode)
	_ = control.Flush()
	var to io.Writer = live
	var stream *Stream
	if secret {
		stream = p.mask.Stream(live)
		to = stream
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{answer.Body}, make([]byte, 32<<10))
	if err == nil && stream != nil {
		err = stream.Close()
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the client must see that something is missing
	}
}

// liveWriter sends each part at once, and gives a client that takes nothing up after the idle time.
type liveWriter struct {
	w       io.Writer
	control *http.ResponseController
	idle    time.Duration
}

func (l *liveWriter) Write(b []byte) (int, error) {
	_ = l.control.SetWriteDeadline(time.Now().Add(l.idle))
	n, err := l.w.Write(b)
	if err == nil {
		err = l.control.Flush()
	}
	return n, err
}

// timedBody gives a client that sends nothing up after the idle time.
type timedBody struct {
	body    io.ReadCloser
	control *http.ResponseController
	idle    time.Duration
}

func (b *timedBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(b.idle))
	n, err := b.body.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{}) // the server goes on to watch for the client's end
	}
	return n, err
}

func (b *timedBody) Close() error { return b.body.Close() }

// transport speaks to the pinned addresses of one route, whatever name is in the request.
func (p *Proxy) transport(to *route) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := dial(ctx, to.addrs, to.port, p.limits.Handshake)
			if err != nil {
				return nil, err
			}
			return &idleConn{c, p.limits.Idle}, nil
		},
		TLSClientConfig:     &tls.Config{ServerName: to.host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
		TLSHandshakeTimeout: p.limits.Handshake, IdleConnTimeout: p.limits.Idle, DisableCompression: true, MaxIdleConnsPerHost: 1,
		MaxResponseHeaderBytes: int64(4 * p.limits.Header), TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}

// idleConn ends when nothing moves for a time.
type idleConn struct {
	net.Conn
	idle time.Duration
}

func (c *idleConn) Read(b []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(c.idle))
	return c.Conn.Read(b)
}

func (c *idleConn) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.idle))
	return c.Conn.Write(b)
}
