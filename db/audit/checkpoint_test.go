package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
)

// A process that is frozen while it holds the lock delays nobody, and the database takes the lock from it.
func TestCheckpointFrozenProcessDelaysNobody(t *testing.T) {
	f := newFixture(t)
	frozen := f.Conn(t, dbtest.Server)
	for _, sql := range []string{"SET idle_in_transaction_session_timeout = 1000", "BEGIN", "SELECT pg_advisory_xact_lock(7236838231894510696)"} {
		if _, err := frozen.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	f.session(t, func(d *db.DB) {
		c, begin := f.checkpointer(d), time.Now()
		made, err := c.Once(t.Context())
		if made != nil || err != nil || time.Since(begin) > 500*time.Millisecond {
			t.Errorf("beside a frozen process: %v %v after %v", made, err, time.Since(begin))
		}
		for made == nil && time.Since(begin) < 5*time.Second {
			time.Sleep(50 * time.Millisecond)
			if made, err = c.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if made == nil || made.Size != f.head {
			t.Errorf("after %v: %+v", time.Since(begin), made)
		}
	})
	f.green(t)
}

func TestCheckpointRunSignsWithinASecond(t *testing.T) {
	f := newFixture(t)
	f.session(t, func(d *db.DB) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { f.checkpointer(d).Run(ctx); close(done) }()
		begin := time.Now()
		for f.green(t).Signed < f.head {
			if time.Since(begin) > 1500*time.Millisecond {
				t.Error("news waited for more than a second")
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		team := dbtest.NewTeam(t, d, "demo")
		team.Converse(t, d)
		settle(t, d)
		stop()
		<-done
	})
	if report := f.green(t); report.Signed != report.Head || report.Head == f.head {
		t.Errorf("what came last was not signed at the end: %+v", report)
	}
}

func TestCheckpointOfNoNews(t *testing.T) {
	f := newFixture(t)
	f.session(t, func(d *db.DB) {
		c := f.checkpointer(d)
		if made := f.checkpoint(t, d); made.Size != f.head || made.Incarnation != 1 || made.Restored {
			t.Errorf("%+v", made)
		}
		after := f.read(t)
		if made, err := c.Once(t.Context()); made != nil || err != nil || !bytes.Equal(after, f.read(t)) {
			t.Errorf("no news: %v %v", made, err)
		}
		last, err := c.Last(t.Context())
		if err != nil || !strings.HasPrefix(last, "cairn log ") || !bytes.HasSuffix(after, []byte(strings.ReplaceAll(last, "\n", `\n`)+`"}`)) {
			t.Errorf("last %q %v", last, err)
		}
	})
}

// A process can end between commit and append, also in the middle of the append.
func TestCheckpointIsAppendedByTheNext(t *testing.T) {
	f := newFixture(t)
	begin := bytes.LastIndexByte(f.pristine, '\n') // of the last line
	for name, c := range map[string]struct {
		file []byte
		torn bool
	}{
		"nothing":     {f.pristine[:begin], false},
		"newline":     {f.pristine[:begin+1], false},
		"half":        {f.pristine[:begin+100], true},
		"all but one": {f.pristine[:len(f.pristine)-1], true},
		"zeros":       {append(bytes.Clone(f.pristine[:begin+100]), 0, 0, 0), true},
	} {
		t.Run(name, func(t *testing.T) {
			f.write(t, c.file)
			if report := f.green(t); report.FileLacks != 1 || report.FileTorn != c.torn {
				t.Errorf("before: %+v", report)
			}
			f.session(t, func(d *db.DB) {
				if _, err := f.checkpointer(d).Once(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
			if report := f.green(t); report.FileLacks != 0 || report.FileTorn || report.Signed != f.head {
				t.Errorf("after: %+v", report)
			}
			if !bytes.HasPrefix(f.read(t), c.file) {
				t.Error("the file was not only appended to")
			}
			f.mend(t)
		})
	}
}

// No new checkpoint is made while the file cannot take it, so that it never lacks more than one.
func TestCheckpointFileUnwritable(t *testing.T) {
	f := newFixture(t)
	folder := filepath.Join(t.TempDir(), "later")
	f.session(t, func(d *db.DB) {
		c := audit.NewCheckpointer(d, filepath.Join(folder, "checkpoints.log"), quiet)
		for range 3 {
			if made, err := c.Once(t.Context()); made != nil || err == nil || !strings.Contains(err.Error(), folder) {
				t.Errorf("%v %v", made, err)
			}
		}
		if report := f.green(t); report.Signed != f.signed {
			t.Errorf("signed without the file: %+v", report)
		}
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if made, err := c.Once(t.Context()); err != nil || made == nil || made.Size != f.head {
			t.Errorf("%v %v", made, err)
		}
	})
	o := f.options()
	o.CheckpointFile = filepath.Join(folder, "checkpoints.log")
	if report, err := audit.Verify(t.Context(), f.owner, o); err != nil || report.Signed != f.head {
		t.Errorf("the new file has all earlier ones: %+v %v", report, err)
	}
}

// The checkpointer signs nothing that contradicts what it can see cheaply.
func TestCheckpointRefuses(t *testing.T) {
	f := newFixture(t)
	other := newFixture(t)
	for name, c := range map[string]struct{ sql, file, want string }{
		"cut":                       {sql: cutSql(f.sizes[1]), want: "cairn admin restored"},
		"tree altered":              {sql: `UPDATE log.log_tree SET hash = sha256(hash)`, want: "its checkpoint says"},
		"tree missing":              {sql: `TRUNCATE log.log_tree`, want: "is missing"},
		"cut below":                 {sql: fmt.Sprintf(cut, f.signed-1), want: "ends at position"},
		"gap":                       {sql: fmt.Sprintf(`DELETE FROM log.event WHERE id = (SELECT event_id FROM log.log_position WHERE position = %d)`, f.signed+1), want: "has no event"},
		"event missing":             {sql: `DELETE FROM log.event WHERE id = (SELECT event_id FROM log.log_position ORDER BY position DESC LIMIT 1)`, want: "has no event"},
		"checkpoint":                {sql: `UPDATE log.log_checkpoint SET note = reverse(note)`, want: "log verify"},
		"another log":               {sql: `UPDATE log.log_identity SET log_id = gen_random_uuid()`, want: "its last checkpoint is of log"},
		"file of another log":       {sql: `UPDATE log.log_identity SET log_id = gen_random_uuid(); TRUNCATE log.log_checkpoint, log.log_tree`, want: "a data folder of its own"},
		"incarnation":               {sql: `UPDATE log.log_identity SET incarnation = 7`, want: "cairn admin restored"},
		"another log file":          {sql: `TRUNCATE log.log_checkpoint, log.log_tree`, file: other.file, want: "signed by"},
		"not a file of checkpoints": {sql: `SELECT 1`, file: garbage(t), want: "was overwritten"},
	} {
		t.Run(name, func(t *testing.T) {
			defer f.mend(t)
			f.exec(t, c.sql)
			file := f.file
			if c.file != "" {
				file = c.file
			}
			f.session(t, func(d *db.DB) {
				made, err := audit.NewCheckpointer(d, file, quiet).Once(t.Context())
				if made != nil || err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%+v %v, want %q", made, err, c.want)
				}
			})
		})
	}
}

func garbage(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(path, bytes.Repeat([]byte("garbage\n"), 10_000), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
