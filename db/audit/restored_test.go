package audit_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
	"cairn/db/embedded"
	"cairn/db/embedded/testcluster"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// dumpTools finds a PostgreSQL that has pg_dump beside the server: the one from npm has not.
func dumpTools(t *testing.T) embedded.Binaries {
	t.Helper()
	for major := 15; major < 30; major++ {
		bin, err := embedded.Find(t.Context(), embedded.FindOptions{Major: major})
		if err == nil && bin.PgDump != "" && bin.PgRestore != "" {
			return bin
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no PostgreSQL server with pg_dump and pg_restore beside it: install postgresql and postgresql-client")
	}
	t.Skip("no PostgreSQL server with pg_dump and pg_restore beside it: install postgresql and postgresql-client")
	return embedded.Binaries{}
}

// dump makes a backup with PostgreSQL's own tool.
func (f *fixture) dump(t *testing.T, bin embedded.Binaries) (restore func(*testing.T) *fixture) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump")
	tool(t, bin.PgDump, "--format=custom", "--file="+path, f.URL(""))
	return func(t *testing.T) *fixture {
		t.Helper()
		database := *f.Database
		database.Name += "_r" + strconv.FormatInt(int64(len(t.Name())), 36) + dbtest.NewID().String()[24:]
		f.exec(t, "CREATE DATABASE "+database.Name+" TEMPLATE template0 STRATEGY FILE_COPY")
		t.Cleanup(func() {
			if _, err := f.owner.Exec(context.Background(), "DROP DATABASE "+database.Name+" WITH (FORCE)"); err != nil {
				t.Errorf("drop: %v", err)
			}
		})
		tool(t, bin.PgRestore, "--exit-on-error", "--dbname="+database.URL(""), path)
		restored := &fixture{Database: &database, file: f.file, head: f.head, signed: f.signed, sizes: f.sizes}
		restored.owner = restored.Conn(t, "")
		return restored
	}
}

func tool(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

func (f *fixture) identity(t *testing.T) (id db.Identity) {
	t.Helper()
	f.session(t, func(d *db.DB) {
		var err error
		if id, err = d.Identity(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	return id
}

func (f *fixture) post(t *testing.T, n int) {
	f.session(t, func(d *db.DB) {
		team := dbtest.NewTeam(t, d, "demo")
		id := team.Converse(t, d)
		for i := range n {
			team.Post(t, d, id, strconv.Itoa(i))
		}
		f.checkpoint(t, d)
	})
}

func startOver(err error) bool { return fault.HasCode(err, "start_over") }

// A restored log keeps its positions and goes on densely. Readers that know more than it, or an earlier life
// of it, start over. Verify accepts what was signed in the lost part, and only that.
func TestRestoredFromABackup(t *testing.T) {
	bin := dumpTools(t)
	cluster, err := testcluster.OpenWith(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixtureIn(t, dbtest.NewIn(t, cluster))
	waiting := f.wait(t, func(*event.Record) {}, f.at(t, f.head), 2) // committed, without a position when the dump is made
	restore := f.dump(t, bin)
	dumped := f.head
	f.post(t, 5)
	lost := f.green(t)
	if lost.Head <= dumped+2 {
		t.Fatalf("%+v", lost)
	}

	r := restore(t)
	for position := range dumped {
		if a, b := f.at(t, position+1), r.at(t, position+1); a.ID != b.ID || !bytes.Equal(a.LeafHash, b.LeafHash) {
			t.Fatalf("position %d is another event", position+1)
		}
	}
	if b := r.red(t); !same(b.Position, dumped+1) || !strings.Contains(b.Error(), "cairn admin restored") {
		t.Errorf("not announced: %v", b)
	}
	old := db.Identity{LogID: lost.LogID, Incarnation: 1, Head: dumped}
	if err := old.Check(db.Cursor{LogID: lost.LogID, Incarnation: 1, Position: dumped}); err != nil {
		t.Errorf("cursor at the head of the dump: %v", err)
	}
	if err := old.Check(db.Cursor{LogID: lost.LogID, Incarnation: 1, Position: dumped + 1}); !startOver(err) {
		t.Errorf("cursor beyond the dump: %v", err)
	}

	made, err := audit.Restored(t.Context(), r.owner, r.Keys, r.file)
	if err != nil || made.Incarnation != 2 || made.Size != dumped || !made.Restored {
		t.Fatalf("%+v %v", made, err)
	}
	if report := r.green(t); report.Incarnation != 2 || report.Signed != dumped || report.Waiting != 2 || len(report.Restored) != 1 || report.FileLacks != 0 {
		t.Errorf("%+v", report)
	}
	id := r.identity(t) // opening the database gives the waiting events their positions
	if err := id.Check(db.Cursor{LogID: id.LogID, Incarnation: 1, Position: 1}); id.Incarnation != 2 || !startOver(err) {
		t.Errorf("cursor of an earlier life: %+v %v", id, err)
	}
	if err := id.Check(db.Cursor{LogID: id.LogID, Incarnation: 2, Position: dumped}); err != nil {
		t.Errorf("cursor of this life: %v", err)
	}
	for i, w := range waiting {
		if got := r.at(t, dumped+1+int64(i)); got.ID != w.ID {
			t.Errorf("position %d is %s, want the waiting %s", dumped+1+int64(i), got.ID, w.ID)
		}
	}
	r.post(t, 3)
	after := r.green(t)
	if after.Head <= dumped+2 || after.Signed != after.Head || after.Waiting != 0 || after.FileLacks != 0 {
		t.Errorf("%+v", after)
	}
	r.tamperAfterRestore(t, dumped, after.Head)

	again := restore(t)
	made, err = audit.Restored(t.Context(), again.owner, again.Keys, again.file)
	if err != nil || made.Incarnation != 3 || made.Size != dumped {
		t.Errorf("the same dump again: %+v %v", made, err)
	}
	again.post(t, 1)
	if report := again.green(t); report.Incarnation != 3 || len(report.Restored) != 2 {
		t.Errorf("%+v", report)
	}
	if b := r.red(t); !strings.Contains(b.Error(), "incarnation") {
		t.Errorf("the second life is over: %v", b)
	}
}

func (f *fixture) tamperAfterRestore(t *testing.T, dumped, head int64) {
	t.Helper()
	for _, position := range []int64{7, dumped, dumped + 1, head} {
		f.exec(t, "UPDATE log.event SET actor = actor || 'x' WHERE id = $1", f.at(t, position).ID)
		if b := f.red(t); !same(b.Position, position) {
			t.Errorf("altered at %d: %v", position, b)
		}
		f.exec(t, "UPDATE log.event SET actor = left(actor, -1) WHERE id = $1", f.at(t, position).ID)
	}
	f.green(t)
	before := f.read(t)
	at := bytes.LastIndex(before, []byte(`\nrestored\n`))
	forged := append(bytes.Clone(before[:at]), bytes.Replace(before[at:], []byte("restored"), []byte("restoreD"), 1)...)
	f.write(t, forged)
	if b := f.red(t); !strings.Contains(b.Error(), "signed by the log's key") {
		t.Errorf("altered mark: %v", b)
	}
	f.write(t, before)
	var note string
	f.owner.QueryRow(t.Context(), "DELETE FROM log.log_checkpoint WHERE incarnation = 2 AND size = $1 RETURNING note", dumped).Scan(&note)
	if b := f.red(t); !same(b.Position, dumped) || !strings.Contains(b.Error(), "database lacks") {
		t.Errorf("mark removed from the database: %v", b)
	}
	end := at + bytes.IndexByte(before[at:], '\n')
	f.write(t, append(bytes.Clone(before[:bytes.LastIndexByte(before[:at], '\n')]), before[end:]...))
	if b := f.red(t); !strings.Contains(b.Error(), "beginning of incarnation 2") {
		t.Errorf("mark removed everywhere: %v", b)
	}
	f.write(t, before)
	f.exec(t, "INSERT INTO log.log_checkpoint SELECT 2, $1, $2, $3::timestamptz", dumped, note, strings.Split(note, "\n")[4])
	f.green(t)
}

// A backup that was altered before it was restored is announced and signed like any other: the checkpoints
// that the file has from before tell.
func TestRestoredFromAnAlteredBackup(t *testing.T) {
	f := newFixture(t)
	f.exec(t, "UPDATE log.event SET actor = 'system' WHERE id = $1", f.at(t, f.sizes[1]).ID)
	f.rehash(t, f.sizes[1])
	f.exec(t, "TRUNCATE log.log_tree, log.log_checkpoint")
	if _, err := audit.Restored(t.Context(), f.owner, f.Keys, f.file); err != nil {
		t.Fatal(err)
	}
	if b := f.red(t); !same(b.Position, f.sizes[0]+1) || !strings.Contains(b.Error(), "not those that were signed") {
		t.Errorf("found %v", b)
	}
}

// An empty log, and a lost file.
func TestRestoredWithoutAFile(t *testing.T) {
	base := dbtest.New(t)
	empty := &fixture{Database: base, file: filepath.Join(t.TempDir(), "checkpoints.log"), owner: base.Conn(t, "")}
	made, err := audit.Restored(t.Context(), empty.owner, base.Keys, empty.file)
	if err != nil || made.Size != 0 || made.Incarnation != 2 {
		t.Fatalf("%+v %v", made, err)
	}
	empty.green(t)
	empty.post(t, 1)
	empty.green(t)

	f := newFixture(t)
	if err := os.Remove(f.file); err != nil {
		t.Fatal(err)
	}
	if made, err := audit.Restored(t.Context(), f.owner, f.Keys, f.file); err != nil || made.Size != f.head || made.Incarnation != 2 {
		t.Errorf("%+v %v", made, err)
	}
	if report := f.green(t); report.FileLacks != 0 || report.Checkpoints != int64(len(f.sizes))+1 {
		t.Errorf("%+v", report)
	}
}

// Only the owner of the log may begin a new life of it, and only with the log's own file.
func TestRestoredRefuses(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	if _, err := audit.Restored(t.Context(), f.Conn(t, dbtest.Server), f.Keys, f.file); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("as the server: %v", err)
	}
	if _, err := audit.Restored(t.Context(), f.owner, f.Keys, other.file); err == nil {
		t.Error("with the file of another log")
	}
	if _, err := audit.Restored(t.Context(), f.owner, other.Keys, f.file); err == nil {
		t.Error("with another key")
	}
	if !bytes.Equal(f.pristine, f.read(t)) || f.green(t).Incarnation != 1 {
		t.Error("a refusal left something behind")
	}
}
