package egress

import (
	"io"
	"net"
	"sync"
	"time"
)

// splice connects the client to the pinned address and passes bytes both ways, as fast as the slower side takes
// them, until both ends are closed or nothing moves for the idle time.
func (p *Proxy) splice(client net.Conn, early io.Reader, first []byte, to *route) {
	server, err := dial(p.ctx, to.addrs, to.port, p.limits.Handshake)
	if err != nil {
		return
	}
	defer server.Close()
	if _, err := server.Write(first); err != nil {
		return
	}
	_ = client.SetDeadline(time.Time{})
	idle := time.AfterFunc(p.limits.Idle, func() {
		client.Close()
		server.Close()
	})
	defer idle.Stop()
	moving := func() { idle.Reset(p.limits.Idle) }
	var both sync.WaitGroup
	both.Go(func() { pass(server, early, moving) })
	both.Go(func() { pass(client, server, moving) })
	both.Wait()
}

func pass(to net.Conn, from io.Reader, moving func()) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			moving()
			if _, err := to.Write(b[:n]); err != nil {
				to.Close()
				return
			}
			moving()
		}
		if err != nil {
			_ = closeWrite(to)
			return
		}
	}
}
