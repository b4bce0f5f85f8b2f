package egress

import (
	"net"
	"sync"
)

// Bounded lets only n connections of a listener live at once. The next one waits in the kernel.
func Bounded(l net.Listener, n int) net.Listener {
	return &bounded{Listener: l, free: make(chan struct{}, n), closed: make(chan struct{})}
}

type bounded struct {
	net.Listener
	free   chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.free <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &boundedConn{Conn: c, release: sync.OnceFunc(func() { <-b.free })}, nil
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

type boundedConn struct {
	net.Conn
	release func()
}

func (c *boundedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite passes the end of one direction on.
func (c *boundedConn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.Close()
}

// handover is the listener of connections that were intercepted.
type handover struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newHandover() *handover {
	return &handover{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (h *handover) give(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.closed:
		return false
	}
}

func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

func (h *handover) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr is of no use, but a listener has one.
func (h *handover) Addr() net.Addr { return &net.TCPAddr{} }
