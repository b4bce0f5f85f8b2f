package torture

import (
	"bytes"
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
	every  int64  // one of so many answers is swallowed
	only   []byte // of those that hold this; empty: of all
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
		if c.active.Load() && bytes.Contains(buffer[:n], c.only) && rand.Int64N(c.every) == 0 {
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

// The answer to an append is swallowed, and the key that sealed it is destroyed before it is asked for again.
// The repetition finds the key gone; all the same, what the caller wanted is in the log.
func TestAnAnswerSwallowedBeforeAnErasure(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("a key is destroyed without the event of its erasure")
	c, address := startCutter(t, base.URL(dbtest.Server))
	c.every, c.only = 1, []byte("INSERT 0 ")
	d := base.Open(t, dbtest.Server, func(o *db.Options) { o.URL, o.NoPositions = address, true })
	owner := base.Conn(t, "")
	team := dbtest.NewTeam(t, d, "demo")
	conversation := team.Converse(t, d)
	team.Post(t, d, conversation, "makes the next one wait, so that its append has no job")
	message := team.Message(conversation, "hello")
	c.active.Store(true)
	done := make(chan error, 1)
	go func() {
		_, err := d.Execute(t.Context(), message, dbtest.Meta(team.Actor()))
		done <- err
	}()
	for there := false; !there; time.Sleep(5 * time.Millisecond) {
		if err := owner.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM log.event WHERE stream_id = $1)", message.Run).Scan(&there); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := owner.Exec(t.Context(), "UPDATE vault.subject_key SET wrapped = NULL, destroyed_at = now() WHERE subject = $1", team.Space); err != nil {
		t.Fatal(err)
	}
	c.active.Store(false)
	if err := <-done; err != nil || c.cuts.Load() == 0 {
		t.Errorf("the message is in the log, its poster is told: %v (%d answers swallowed)", err, c.cuts.Load())
	}
}
