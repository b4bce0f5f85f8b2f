package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Secrets gives the value of a secret of the run's space.
type Secrets interface {
	Secret(ctx context.Context, name string) (string, error)
}

// Limits bound one proxy. Zero gives the default in parentheses.
type Limits struct {
	Connections int           // at once; the next one waits (64)
	Header      int           // bytes of a request's head (64 KiB)
	Handshake   time.Duration // for a head, a ClientHello, a connection to a server (10 s)
	Idle        time.Duration // without a byte in either direction (5 min)
}

func (l *Limits) fill() {
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{{&l.Handshake, 10 * time.Second}, {&l.Idle, 5 * time.Minute}} {
		if *d.v <= 0 {
			*d.v = d.d
		}
	}
	if l.Connections <= 0 {
		l.Connections = 64
	}
	if l.Header <= 0 {
		l.Header = 64 << 10
	}
}

// Config is one proxy, for one sandbox.
type Config struct {
	Policy    Policy
	Authority *Authority  // signs what intercepted connections show
	Secrets   Secrets     // of the policy's injections; may be nil when there are none
	OnDecided func(Batch) // within a second at first, each half a minute later; one at a time, and for the last time in Close; may be nil
	Limits    Limits
}

// Proxy serves one sandbox. Make one with New.
type Proxy struct {
	policy *compiled
	ca     *Authority
	values map[string]string // secrets by name
	mask   *Mask
	ledger *ledger
	limits Limits

	outer, inner *http.Server
	handed       *handover
	ctx          context.Context // ends with the proxy
	cancel       context.CancelFunc
	once         sync.Once

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup // requests and tunnels
}

// minSecret keeps the mask from overwriting half of an answer, and its absence from telling a guess.
const minSecret = 8

// New checks the policy and fetches its secrets; a proxy that could not inject what it must is not made.
func New(ctx context.Context, c Config) (*Proxy, error) {
	if err := c.Policy.check(maxEffective); err != nil {
		return nil, err
	}
	if c.Policy.Tier == None {
		return nil, errors.New("egress proxy: tier none has none")
	}
	if c.Authority == nil {
		return nil, errors.New("egress proxy: no authority")
	}
	c.Limits.fill()
	p := &Proxy{policy: compile(c.Policy), ca: c.Authority, values: map[string]string{}, limits: c.Limits}
	if err := p.fetch(ctx, c.Secrets); err != nil {
		return nil, err
	}
	p.ledger = newLedger(c.OnDecided)
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.handed = newHandover()
	quiet := log.New(io.Discard, "", 0) // what clients do wrong is theirs; decisions are recorded
	p.outer = &http.Server{
		Handler: http.HandlerFunc(p.serveOuter), ReadHeaderTimeout: c.Limits.Handshake, IdleTimeout: c.Limits.Idle, MaxHeaderBytes: c.Limits.Header, ErrorLog: quiet,
	}
	p.inner = &http.Server{
		Handler: http.HandlerFunc(p.serveInner), ReadHeaderTimeout: c.Limits.Handshake, IdleTimeout: c.Limits.Idle, MaxHeaderBytes: c.Limits.Header, ErrorLog: quiet,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, routeKey{}, c.(*interceptedConn).route)
		},
	}
	return p, nil
}

func (p *Proxy) fetch(ctx context.Context, from Secrets) error {
	var hide []string
	for _, j := range p.policy.injections {
		if _, have := p.values[j.Secret]; !have {
			if from == nil {
				return fmt.Errorf("egress injection for %s: nobody gives the secret %q", j.Host, j.Secret)
			}
			v, err := from.Secret(ctx, j.Secret)
			if err != nil {
				return fmt.Errorf("egress injection for %s: secret %q: %w", j.Host, j.Secret, err)
			}
			if len(v) < minSecret || strings.ContainsFunc(v, func(c rune) bool { return c < 0x21 || c > 0x7e }) {
				return fmt.Errorf("egress injection for %s: secret %q must be at least %d printable ASCII characters without a space", j.Host, j.Secret, minSecret)
			}
			p.values[j.Secret] = v
		}
		hide = append(hide, p.values[j.Secret])
		if j.Basic != "" {
			hide = append(hide, base64.StdEncoding.EncodeToString([]byte(j.Basic+":"+p.values[j.Secret])))
		}
	}
	p.mask = NewMask(hide...)
	return nil
}

// Mask hides the secrets of this proxy in other text, such as a tool's output.
func (p *Proxy) Mask() *Mask { return p.mask }

// Counts are the totals so far.
func (p *Proxy) Counts() Counts { return p.ledger.counts() }

// Serve answers what connects to l until Close, and then returns nil.
func (p *Proxy) Serve(l net.Listener) error {
	if !p.begin() {
		return nil
	}
	go func() {
		defer p.work.Done()
		_ = p.inner.Serve(p.handed) // ends by Close alone
	}()
	err := p.outer.Serve(Bounded(l, p.limits.Connections))
	if errors.Is(err, http.ErrServerClosed) || p.ctx.Err() != nil {
		return nil
	}
	return err
}

// begin counts a piece of work; false once the proxy closes.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.work.Add(1)
	}
	return !p.closed
}

// Close ends every connection and hands the last decisions on.
func (p *Proxy) Close() error {
	var err error
	p.once.Do(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.cancel()
		err = errors.Join(p.outer.Close(), p.handed.Close(), p.inner.Close())
		p.work.Wait()
		p.ledger.close()
		clear(p.values)
	})
	return err
}

// route is where one connection of the client goes: judged, resolved and pinned.
type route struct {
	host  string
	port  int
	plain bool
	addrs []netip.Addr
	http  *http.Transport // for this connection alone
}

type routeKey struct{}

func (p *Proxy) refuse(d Decision, r *refusal) {
	d.Allowed, d.Rule, d.Reason = false, "", r.reason
	p.ledger.record(d)
}

// deny records a refusal and answers it. The answer names rule, value and fix, for the program that reads it.
func (p *Proxy) deny(w http.ResponseWriter, d Decision, r *refusal) {
	p.refuse(d, r)
	w.Header().Set("X-Cairn-Egress", "refused; reason="+r.reason)
	w.Header().Set("Connection", "close")
	http.Error(w, "cairn egress: refused ("+r.reason+"): "+r.text, http.StatusForbidden)
}

func (p *Proxy) serveOuter(w http.ResponseWriter, req *http.Request) {
	if !p.begin() {
		panic(http.ErrAbortHandler)
	}
	defer p.work.Done()
	if req.Method == http.MethodConnect {
		p.connect(w, req)
		return
	}
	p.plain(w, req)
}

// connect answers CONNECT: judges the host, resolves and pins it, and hands the connection on.
func (p *Proxy) connect(w http.ResponseWriter, req *http.Request) {
	d := Decision{Method: "CONNECT"}
	host, port, ok := authority(req.RequestURI, 0)
	if !ok {
		p.deny(w, d, refuse(ReasonInvalidHost, "want CONNECT with name:port"))
		return
	}
	d.Host, d.Port = host, port
	mode, rule, reason := p.policy.connect(host, port)
	if mode == refused {
		p.deny(w, d, refuse(reason, "%s:%d is not among what tier %s reaches; the agent's egress rules would have to list it", host, port, p.policy.tier))
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), p.limits.Handshake)
	defer cancel()
	addrs, err := resolve(ctx, host)
	if r, is := errors.AsType[*refusal](err); is {
		p.deny(w, d, r)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	d.Rule = rule
	stop := context.AfterFunc(p.ctx, func() { conn.Close() })
	defer stop()
	p.established(conn, rw.Reader, mode, &route{host: host, port: port, addrs: addrs}, d)
}

// established goes on after the answer to CONNECT. What was sent ahead of it is in early.
func (p *Proxy) established(conn net.Conn, early *bufio.Reader, m mode, to *route, d Decision) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(p.limits.Handshake)) // a closed connection shows at the next write
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if m == raw {
		d.Allowed = true
		p.ledger.record(d)
		p.splice(conn, early, nil, to)
		return
	}
	sent, hello, err := readHello(early)
	if r := judgeHello(to.host, hello, err); r != nil {
		p.refuse(d, r)
		return
	}
	if m == tunnel {
		d.Allowed = true
		p.ledger.record(d)
		p.splice(conn, early, sent, to)
		return
	}
	p.intercept(&prefixed{conn, io.MultiReader(strings.NewReader(string(sent)), early)}, to, d)
}

// judgeHello wants a ClientHello for the very host, in the clear.
func judgeHello(host string, h Hello, err error) *refusal {
	_, literal := netip.ParseAddr(host)
	switch {
	case errors.Is(err, errHello):
		return refuse(ReasonHello, "the ClientHello for %s is malformed", host)
	case err != nil:
		return refuse(ReasonNotTLS, "%s was asked for by CONNECT, and no TLS followed", host)
	case h.ECH:
		return refuse(ReasonECH, "the ClientHello for %s hides its name", host)
	case literal == nil && h.Name == "":
		return nil // TLS to an address names nothing
	case h.Name == "":
		return refuse(ReasonSNIMissing, "the ClientHello for %s names no server", host)
	case !strings.EqualFold(h.Name, host):
		return refuse(ReasonSNIMismatch, "the ClientHello for %s names another server", host)
	}
	return nil
}

// intercept ends TLS here and gives the connection to the inner server, then waits until it is over.
func (p *Proxy) intercept(conn net.Conn, to *route, d Decision) {
	t := tls.Server(conn, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if h.ServerName != "" && !strings.EqualFold(h.ServerName, to.host) {
				return nil, errors.New("server name changed")
			}
			return p.ca.leaf(to.host)
		},
	})
	if err := t.HandshakeContext(p.ctx); err != nil {
		return // the client's choice, such as not to trust the authority: nothing was asked for
	}
	_ = conn.SetDeadline(time.Time{})
	to.http = p.transport(to)
	defer to.http.CloseIdleConnections()
	c := &interceptedConn{Conn: t, route: to, gone: make(chan struct{})}
	if !p.handed.give(c) {
		return
	}
	<-c.gone
}

// prefixed gives back what was read ahead.
type prefixed struct {
	net.Conn
	r io.Reader
}

func (c *prefixed) Read(b []byte) (int, error) { return c.r.Read(b) }

type interceptedConn struct {
	*tls.Conn
	route *route
	once  sync.Once
	gone  chan struct{}
}

func (c *interceptedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.gone) })
	return err
}
