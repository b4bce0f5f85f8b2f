package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/db/embedded"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// strikers append by both ways until stop is closed. Every answer must be a success.
func strikers(t *testing.T, d *db.DB, n int, stop <-chan struct{}) (wait func() []Ack) {
	var mu sync.Mutex
	var acks []Ack
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			private, version := Private(event.ID(uuid.Must(uuid.NewV7()))), int64(0)
			for k := int64(1); ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				blow := Blow{Process: "here", Writer: i, N: k, Count: version + 1}
				var records []event.Record
				var err error
				if k%2 == 0 {
					var result db.Result
					result, err = d.Execute(context.Background(), Strike{On: Anvil(i % 2), Blow: blow}, dbtest.Meta(event.System))
					records = result.Records
				} else {
					records, err = d.Append(context.Background(), dbtest.Meta(event.System), db.Expected{
						Change: event.Change{Stream: private, Events: []event.Event{Noted{blow}}}, Version: version,
					})
					version++
				}
				if k%2 == 0 && fault.HasCode(err, "database_unavailable") && strings.Contains(err.Error(), "load") {
					continue // refused before anything was written
				}
				if err != nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
				mu.Lock()
				for _, r := range records {
					acks = append(acks, Ack{ID: r.ID})
				}
				mu.Unlock()
			}
		})
	}
	return func() []Ack { wg.Wait(); return acks }
}

func verify(t *testing.T, url string, acks []Ack) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	log, wrong, err := Check(t.Context(), conn, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if wrong = append(wrong, CheckAcks(log, acks, nil)...); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
	if len(acks) < 20 {
		t.Errorf("%d appends prove nothing", len(acks))
	}
}

// TestTerminatedBackends ends the server's side of the connections over and over: whether a commit was
// carried out is then unknown, and must be found out.
func TestTerminatedBackends(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("events of a kind that only this test knows")
	d := base.Open(t, dbtest.Server, Use)
	stop := make(chan struct{})
	wait := strikers(t, d, 8, stop)
	admin := base.Conn(t, "")
	var killed int64
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
		var n int64
		err := admin.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
			WHERE datname = current_database() AND usename = 'cairn_server' ORDER BY random() LIMIT 2) p`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		killed += n
	}
	close(stop)
	acks := wait()
	t.Logf("%d backends ended, %d events acknowledged", killed, len(acks))
	verify(t, base.URL(""), acks)
}

// cluster is a private one, since the shared one must not be restarted.
func cluster(t *testing.T, dir string) *embedded.Cluster {
	t.Helper()
	c, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, Fsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// open migrates the cluster's database and opens it.
func open(t *testing.T, c *embedded.Cluster, blobDir string) *db.DB {
	t.Helper()
	if _, err := db.Migrate(t.Context(), c.URL("postgres", c.Superuser())); err != nil {
		t.Fatal(err)
	}
	keys, err := db.LoadKeyring(t.TempDir()+"/keys", true)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := db.OpenBlobStore(blobDir)
	if err != nil {
		t.Fatal(err)
	}
	o := db.Options{URL: c.URL("postgres", dbtest.Server), Name: t.Name(), Keys: keys, Blobs: blobs}
	Use(&o)
	d, err := db.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// TestServerRestarts shuts the server down and crashes it under writers.
func TestServerRestarts(t *testing.T) {
	dir := reachable(t)
	c := cluster(t, dir)
	d := open(t, c, t.TempDir())
	stop := make(chan struct{})
	wait := strikers(t, d, 8, stop)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		time.Sleep(300 * time.Millisecond)
		if err := syscall.Kill(c.Pid(), s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		again, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, Fsync: true})
		if err != nil {
			t.Fatalf("after %v: %v", s, err)
		}
		defer again.Close()
	}
	time.Sleep(300 * time.Millisecond)
	close(stop)
	acks := wait()
	t.Logf("%d events acknowledged over three restarts", len(acks))
	verify(t, c.URL("postgres", c.Superuser()), acks)
}

// reachable is a folder that PostgreSQL's own account can enter, unlike those of t.TempDir.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "cairn-torture-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s/data", dir)
}
