package torture

import (
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/dbtest"
)

// cutter passes connections on and, now and then, swallows an answer of the server and hangs up: what was
// asked is done, and the client does not know.
type cutter struct {
	target net.Addr
	every  int64 // one of so many answers is swallowed; 0: none
	cuts   atomic.Int64
	active atomic.Bool
}

// startCutter listens where a client looks for the server of a URL, and answers the URL that leads there.
func startCutter(t *testing.T, address string) (*cutter, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("host") == "" {
		t.Skip("needs the server of this machine, not that of TEST_DATABASE_URL")
	}
	socket := func(dir string) string { return filepath.Join(dir, ".s.PGSQL."+q.Get("port")) }
	dir := t.TempDir()
	listener, err := net.Listen("unix", socket(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	c := &cutter{target: &net.UnixAddr{Name: socket(q.Get("host")), Net: "unix"}, every: 40}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go c.pass(client)
		}
	}()
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	return c, u.String()
}

func (c *cutter) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(c.target.Network(), c.target.String())
	if err != nil {
		return
	}
	defer server.Close()
	go io.Copy(server, client)
	for buffer := make([]byte, 64<<10); ; {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if c.active.Load() && rand.Int64N(c.every) == 0 {
			c.cuts.Add(1)
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func TestSwallowedAnswers(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("events of a kind that only this test knows")
	c, address := startCutter(t, base.URL(dbtest.Server))
	d := base.Open(t, dbtest.Server, Use, func(o *db.Options) { o.URL = address })
	stop := make(chan struct{})
	c.active.Store(true)
	wait := strikers(t, d, 8, stop)
	time.Sleep(1500 * time.Millisecond)
	close(stop)
	acks := wait()
	c.active.Store(false)
	t.Logf("%d answers swallowed, %d events acknowledged", c.cuts.Load(), len(acks))
	if c.cuts.Load() < 5 {
		t.Error("too few to prove anything")
	}
	verify(t, base.URL(""), acks)
}
