package torture

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/db/embedded"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// small mounts a file system of so many bytes.
func small(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755,size="+size); err != nil {
		if errors.Is(err, unix.EPERM) && os.Getenv("CI") != "true" {
			t.Skip("mounting a small disk needs root")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

// fill takes what is left of a disk; the function it answers gives it back.
func fill(t *testing.T, dir string, leave int64) func() {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, max(4096, int64(s.Bavail)*s.Bsize-leave)), f.Close()); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

func TestFullDiskForBlobs(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("a blob is taken away")
	dir := t.TempDir()
	small(t, dir, "4m")
	blobs, err := db.OpenBlobStore(filepath.Join(dir, "blob"))
	if err != nil {
		t.Fatal(err)
	}
	d := base.Open(t, dbtest.Server, func(o *db.Options) { o.Blobs = blobs })
	team := dbtest.NewTeam(t, d, "demo")
	id := team.Converse(t, d)
	free := fill(t, dir, 200<<10)
	before := logSize(t, base)
	_, err = d.Execute(t.Context(), team.Message(id, strings.Repeat("x", 900<<10)), dbtest.Meta(team.Actor()))
	if !fault.HasCode(err, "blob_store_failed") || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("full disk: %v", err)
	}
	if after := logSize(t, base); after != before {
		t.Errorf("%d events were written", after-before)
	}
	if left := files(t, filepath.Join(dir, "blob")); len(left) > 0 {
		t.Errorf("half-written files: %v", left)
	}
	team.Post(t, d, id, "small texts need no blob")
	free()
	team.Post(t, d, id, strings.Repeat("x", 900<<10))
}

// flood appends large events until one is refused, and answers the refusal.
func flood(t *testing.T, d *db.DB, acks *[]Ack) error {
	t.Helper()
	for range 400 {
		stream := Private(event.ID(uuid.Must(uuid.NewV7())))
		blow := Blow{Process: strings.Repeat("p", 100_000) + stream.ID.String(), N: 1, Count: 1} // long, and no two alike
		records, err := d.Append(context.Background(), dbtest.Meta(event.System), db.Expected{Change: event.Change{Stream: stream, Events: []event.Event{Noted{blow}}}})
		if err != nil {
			return err
		}
		*acks = append(*acks, Ack{ID: records[0].ID})
	}
	t.Fatal("the disk is not full")
	return nil
}

// incompressible makes the tables take what they are given.
const incompressible = "ALTER TABLE log.event ALTER COLUMN data SET STORAGE EXTERNAL"

// TestFullDiskForTables: the server goes on, the append is refused.
func TestFullDiskForTables(t *testing.T) {
	dir := reachable(t)
	c := cluster(t, dir)
	d := open(t, c, t.TempDir())
	place := filepath.Join(filepath.Dir(dir), "small")
	small(t, place, "8m")
	owner, err := os.Stat(filepath.Join(dir, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(place, "table")
	uid := int(owner.Sys().(*syscall.Stat_t).Uid)
	if err := errors.Join(os.Mkdir(table, 0o700), os.Chown(table, uid, -1)); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), c.URL("postgres", c.Superuser()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range []string{incompressible, "CREATE TABLESPACE small LOCATION '" + table + "'", "ALTER TABLE log.event SET TABLESPACE small"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	free := fill(t, place, 2<<20)
	var acks []Ack
	if err := flood(t, d, &acks); !fault.HasCode(err, "database_full") || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("full disk: %v", err)
	}
	free()
	for len(acks) < 60 {
		appendOne(t, d, &acks)
	}
	verify(t, c.URL("postgres", c.Superuser()), acks)
}

func appendOne(t *testing.T, d *db.DB, acks *[]Ack) {
	t.Helper()
	stream := Private(event.ID(uuid.Must(uuid.NewV7())))
	records, err := d.Append(context.Background(), dbtest.Meta(event.System), db.Expected{
		Change: event.Change{Stream: stream, Events: []event.Event{Noted{Blow{Process: stream.ID.String(), N: 1, Count: 1}}}},
	})
	if err != nil {
		t.Fatalf("after space was freed: %v", err)
	}
	*acks = append(*acks, Ack{ID: records[0].ID})
}

// TestFullDiskForTheServer fills the disk of the whole data folder: PostgreSQL itself gives up then.
func TestFullDiskForTheServer(t *testing.T) {
	dir := filepath.Join(filepath.Dir(reachable(t)), "small")
	small(t, dir, "200m")
	data := filepath.Join(dir, "data")
	c := cluster(t, data)
	d := open(t, c, t.TempDir())
	conn, err := pgx.Connect(t.Context(), c.URL("postgres", c.Superuser()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), incompressible); err != nil {
		t.Fatal(err)
	}
	conn.Close(context.Background())
	free := fill(t, dir, 8<<20)
	var acks []Ack
	err = flood(t, d, &acks)
	t.Logf("after %d events: %v", len(acks), err)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "disk full") && !strings.Contains(err.Error(), "free some space") {
		t.Errorf("full disk: %v", err)
	}
	free()
	again, err := embedded.Open(t.Context(), embedded.Options{Dir: data, Fsync: true})
	if err != nil {
		t.Fatalf("starting after space was freed: %v", err)
	}
	defer again.Close()
	time.Sleep(300 * time.Millisecond)
	for len(acks) < 60 {
		appendOne(t, d, &acks)
	}
	verify(t, c.URL("postgres", c.Superuser()), acks)
}
