package hand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"cairn/sandbox/hand/wire"
)

// ErrLost means that the hand is gone or broke the protocol. The sandbox is
// of no use any more; a call that was running is in doubt.
var ErrLost = errors.New("the hand of the sandbox is lost")

// SetupError is a refusal of the hand during set-up.
type SetupError struct {
	Control, Message string
}

func (e *SetupError) Error() string { return e.Control + ": " + e.Message }

// Fault is an answer of a tool that the model can read, not an error of the
// transport. Code is one of the wire.Code constants.
type Fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (f *Fault) Error() string { return f.Code + ": " + f.Message }

// Client multiplexes requests over one connection.
type Client struct {
	conn  *os.File
	out   *wire.Writer
	mu    sync.Mutex
	next  uint64
	calls map[uint64]*Call
	lost  error
	gone  chan struct{}

	settingUp bool
}

// sendTimeout is how long a hand may not read before it counts as lost; a
// healthy one never waits for anything before it reads on.
const sendTimeout = 10 * time.Second

type timed struct{ conn *os.File }

func (t timed) Write(p []byte) (int, error) {
	if err := t.conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return 0, err
	}
	return t.conn.Write(p)
}

// NewClient takes over conn, a non-blocking stream socket.
func NewClient(conn *os.File) *Client {
	return &Client{conn: conn, out: wire.NewWriter(timed{conn}), calls: map[uint64]*Call{}, gone: make(chan struct{})}
}

// Setup sends the plan, waits for the hand to be ready and begins to read
// answers. It may be called once.
func (c *Client) Setup(ctx context.Context, plan []byte) (wire.Ready, error) {
	if d, ok := ctx.Deadline(); ok {
		if err := c.conn.SetDeadline(d); err != nil {
			return wire.Ready{}, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c.markSetup(true)
	r, err := c.setup(plan)
	c.markSetup(false)
	if err != nil {
		return r, err
	}
	if !stop() {
		return r, ctx.Err()
	}
	if err := c.conn.SetDeadline(time.Time{}); err != nil {
		return r, err
	}
	go c.read(c.conn)
	return r, nil
}

func (c *Client) setup(plan []byte) (wire.Ready, error) {
	if len(plan) > wire.MaxPayload {
		return wire.Ready{}, fmt.Errorf("plan of %d bytes, limit %d: fewer mounts or lowers", len(plan), wire.MaxPayload)
	}
	if err := c.out.Send(wire.Frame{Kind: wire.KindSetup, Payload: plan}); err != nil {
		return wire.Ready{}, fmt.Errorf("%w: send the plan: %w", ErrLost, err)
	}
	f, err := wire.ReadFrame(c.conn)
	if err != nil {
		return wire.Ready{}, fmt.Errorf("%w: during set-up: %w", ErrLost, err)
	}
	switch {
	case f.Kind == wire.KindReady && f.ID == 0:
		return wire.DecodeReady(f.Payload)
	case f.Kind == wire.KindFail && f.ID == 0:
		m, err := wire.DecodeFail(f.Payload)
		if err != nil {
			return wire.Ready{}, err
		}
		return wire.Ready{}, &SetupError{Control: m.Control, Message: m.Message}
	}
	return wire.Ready{}, fmt.Errorf("%w: %w: kind %d during set-up", ErrLost, wire.ErrProtocol, f.Kind)
}

// Gone is closed when the hand is lost or the client closed.
func (c *Client) Gone() <-chan struct{} { return c.gone }

// Close ends the connection; the hand exits, and with it the sandbox.
func (c *Client) Close() { c.lose(errors.New("closed")) }

// Lose gives the hand up, for a reason of the caller. While the hand is being set up it only stops waiting
// for more: a hand that refuses says why and ends, and its end may be seen before its words are read.
func (c *Client) Lose(reason error) {
	c.mu.Lock()
	waiting := c.settingUp
	c.mu.Unlock()
	if waiting && c.conn.SetReadDeadline(time.Now().Add(lastFrame)) == nil {
		return
	}
	c.lose(reason)
}

// lastFrame is how long the words of a hand that has ended are waited for; they are in the socket already.
const lastFrame = time.Second

func (c *Client) markSetup(on bool) {
	c.mu.Lock()
	c.settingUp = on
	c.mu.Unlock()
}

func (c *Client) lose(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return
	}
	c.lost = fmt.Errorf("%w: %w", ErrLost, reason)
	c.conn.Close()
	for id, k := range c.calls {
		delete(c.calls, id)
		k.end(nil, c.lost)
	}
	close(c.gone)
}

// read takes frames until one is wrong. Whatever it is given, it neither
// panics nor keeps more than a window per stream.
func (c *Client) read(r io.Reader) {
	for {
		f, err := wire.ReadFrame(r)
		if err == nil {
			err = c.take(f)
		}
		if err != nil {
			c.lose(err)
			return
		}
	}
}

func (c *Client) take(f wire.Frame) error {
	c.mu.Lock()
	k := c.calls[f.ID]
	if k != nil && (f.Kind == wire.KindDone || f.Kind == wire.KindFail) {
		delete(c.calls, f.ID)
	}
	c.mu.Unlock()
	if k == nil {
		return fmt.Errorf("%w: kind %d for unknown request %d", wire.ErrProtocol, f.Kind, f.ID)
	}
	switch f.Kind {
	case wire.KindData:
		return k.data(f)
	case wire.KindBodyCredit:
		n, err := wire.DecodeCredit(f.Payload)
		if err != nil {
			return err
		}
		return k.body.Give(n)
	case wire.KindDone:
		k.end(f.Payload, nil)
		return nil
	case wire.KindFail:
		m, err := wire.DecodeFail(f.Payload)
		if err != nil {
			k.end(nil, fmt.Errorf("%w: %w", ErrLost, err))
			return err
		}
		k.end(nil, &Fault{Code: m.Code, Message: m.Message})
		return nil
	}
	return fmt.Errorf("%w: kind %d from the hand", wire.ErrProtocol, f.Kind)
}

// Start sends a request. Its payload must fit into one frame.
func (c *Client) Start(payload []byte) (*Call, error) {
	if len(payload) > wire.MaxPayload {
		return nil, &Fault{Code: wire.CodeTooLarge, Message: fmt.Sprintf("request of %d bytes, limit %d", len(payload), wire.MaxPayload)}
	}
	k := &Call{client: c, out: wire.NewQueue(), err: wire.NewQueue(), body: wire.NewValve(), done: make(chan struct{})}
	c.mu.Lock()
	if c.lost != nil {
		c.mu.Unlock()
		return nil, c.lost
	}
	c.next++
	k.id = c.next
	c.calls[k.id] = k
	c.mu.Unlock()
	if err := k.send(wire.KindRequest, wire.StreamNone, payload); err != nil {
		return nil, err
	}
	return k, nil
}
