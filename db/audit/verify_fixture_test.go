package audit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
	"cairn/domain/event"
)

// logTables are all tables that log verify reads.
var logTables = []string{"log_identity", "stream", "event", "unsequenced", "log_position", "log_head", "log_tree", "log_checkpoint"}

// fixture is a signed log at rest, with a few last positions that no checkpoint covers yet, and a superuser.
type fixture struct {
	*dbtest.Database
	file     string
	owner    *pgx.Conn
	head     int64 // last position
	signed   int64 // last one that a checkpoint covers
	sizes    []int64
	pristine []byte // of the file
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureIn(t, dbtest.New(t))
}

func newFixtureIn(t *testing.T, database *dbtest.Database) *fixture {
	t.Helper()
	f := &fixture{Database: database}
	f.SkipReplay("the log is altered behind the back of its projections")
	f.file = filepath.Join(t.TempDir(), "checkpoints.log")
	f.owner = f.Conn(t, "")
	f.session(t, func(d *db.DB) {
		team := dbtest.NewTeam(t, d, "demo")
		one, two := team.Converse(t, d), team.Converse(t, d)
		for i := range 5 {
			team.Post(t, d, one, "one "+strconv.Itoa(i))
			team.Post(t, d, two, "two "+strconv.Itoa(i))
			f.signed = f.checkpoint(t, d).Size
			f.sizes = append(f.sizes, f.signed)
		}
		team.Post(t, d, one, "not signed yet")
	})
	f.owner.QueryRow(t.Context(), "SELECT last FROM log.log_head").Scan(&f.head)
	if f.head <= f.signed || f.signed < 20 {
		t.Fatalf("head %d, signed %d", f.head, f.signed)
	}
	f.exec(t, "CREATE SCHEMA pristine")
	for _, table := range logTables {
		f.exec(t, "CREATE TABLE pristine."+table+" AS TABLE log."+table)
	}
	f.pristine = f.read(t)
	return f
}

// session opens the database, does something, and closes it, so that nothing runs in the background after.
func (f *fixture) session(t *testing.T, do func(*db.DB)) {
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{URL: f.URL(dbtest.Server), Name: t.Name(), Keys: f.Keys, Blobs: f.Blobs})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	do(d)
}

func (f *fixture) checkpointer(d *db.DB) *audit.Checkpointer {
	return audit.NewCheckpointer(d, f.file, quiet)
}

// checkpoint waits until everything has a position and signs it.
func (f *fixture) checkpoint(t *testing.T, d *db.DB) *audit.Checkpoint {
	t.Helper()
	settle(t, d)
	made, err := f.checkpointer(d).Once(t.Context())
	if err != nil || made == nil {
		t.Fatalf("checkpoint: %v %v", made, err)
	}
	return made
}

func settle(t *testing.T, d *db.DB) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		age, err := d.UnsequencedAge(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("positions: %v %v", age, err)
		}
		if age == nil {
			return
		}
	}
}

func (f *fixture) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := f.owner.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%.200s: %v", sql, err)
	}
}

func (f *fixture) read(t testing.TB) []byte {
	t.Helper()
	content, err := os.ReadFile(f.file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (f *fixture) write(t testing.TB, content []byte) {
	t.Helper()
	if err := os.WriteFile(f.file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// mend puts everything back as it was.
func (f *fixture) mend(t testing.TB) {
	t.Helper()
	var sql strings.Builder
	for _, table := range logTables {
		fmt.Fprintf(&sql, "DELETE FROM log.%[1]s; INSERT INTO log.%[1]s OVERRIDING SYSTEM VALUE TABLE pristine.%[1]s;", table)
	}
	f.exec(t, sql.String())
	f.write(t, f.pristine)
}

func (f *fixture) options() audit.VerifyOptions {
	return audit.VerifyOptions{Verifier: f.Keys.Verifier, CheckpointFile: f.file, Blobs: f.Blobs}
}

func (f *fixture) verify(t testing.TB) (audit.Report, error) {
	t.Helper()
	return audit.Verify(context.Background(), f.owner, f.options())
}

// green demands that verify finds nothing.
func (f *fixture) green(t testing.TB) audit.Report {
	t.Helper()
	report, err := f.verify(t)
	if err != nil {
		t.Fatalf("untouched log: %v", err)
	}
	return report
}

// red demands a finding and returns it.
func (f *fixture) red(t testing.TB) *audit.Broken {
	t.Helper()
	_, err := f.verify(t)
	found, ok := errors.AsType[*audit.Broken](err)
	if !ok {
		t.Fatalf("verify: %v, want a finding", err)
	}
	t.Log(err)
	return found
}

// at returns the record at a position, read by the superuser.
func (f *fixture) at(t testing.TB, position int64) event.Record {
	t.Helper()
	r := event.Record{Position: position}
	var data string
	err := f.owner.QueryRow(t.Context(), `SELECT e.id, stream_id, version, space_id, topic_id, kind, schema, data::text, actor, command_id, cause_id,
		trace_id, recorded_at, leaf_version, leaf_hash FROM log.event e WHERE id = (SELECT event_id FROM log.log_position WHERE position = $1)`, position).
		Scan(&r.ID, &r.StreamID, &r.Version, &r.SpaceID, &r.TopicID, &r.Kind, &r.Schema, &data, &r.Actor, &r.CommandID, &r.CauseID,
			&r.TraceID, &r.RecordedAt, &r.LeafVersion, &r.LeafHash)
	if err != nil {
		t.Fatal(err)
	}
	r.Data = []byte(data)
	return r
}

// rehash does what an attacker without the key can do: it makes leaf and tree fit the altered event.
func (f *fixture) rehash(t testing.TB, position int64) {
	r := f.at(t, position)
	f.exec(t, "UPDATE log.event SET leaf_hash = $2 WHERE id = $1", r.ID, event.Leaf(&r))
}

func (f *fixture) replant(t testing.TB, size int64) {
	t.Helper()
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) (hashes []tlog.Hash, err error) {
		for _, index := range indexes {
			hashes = append(hashes, stored[index])
		}
		return hashes, nil
	})
	f.exec(t, "TRUNCATE log.log_tree")
	for n := range size {
		hashes, err := tlog.StoredHashes(n, f.at(t, n+1).LeafHash, reader)
		if err != nil {
			t.Fatal(err)
		}
		for _, hash := range hashes {
			f.exec(t, "INSERT INTO log.log_tree VALUES ($1, $2)", len(stored), hash[:])
			stored = append(stored, hash)
		}
	}
}
