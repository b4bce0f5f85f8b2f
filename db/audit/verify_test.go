package audit_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestVerifyOfAnUntouchedLog(t *testing.T) {
	f := newFixture(t)
	var progress []int64
	o := f.options()
	o.Progress = func(position, head int64) { progress = append(progress, position, head) }
	report, err := audit.Verify(t.Context(), f.Conn(t, dbtest.Worker), o)
	if err != nil {
		t.Fatal(err)
	}
	if report.Head != f.head || report.Events != f.head || report.Signed != f.signed || report.Checkpoints != int64(len(f.sizes)) ||
		report.Streams == 0 || report.Waiting != 0 || !report.FileChecked || report.FileLacks != 0 || report.FileTorn || report.Incarnation != 1 {
		t.Errorf("%+v", report)
	}
	if len(progress) != 2 || progress[0] != f.head || progress[1] != f.head {
		t.Errorf("progress %v", progress)
	}
}

func TestVerifyOfAnEmptyLog(t *testing.T) {
	base := dbtest.New(t)
	report, err := audit.Verify(t.Context(), base.Conn(t, ""), audit.VerifyOptions{
		Verifier: base.Keys.Verifier, CheckpointFile: filepath.Join(t.TempDir(), "none"),
	})
	if err != nil || report.Head != 0 || report.Root != "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=" {
		t.Errorf("%+v %v", report, err)
	}
}

// Verify reads one snapshot, so that it is green at any moment of a log that is written and signed.
func TestVerifyWhileWritersAppend(t *testing.T) {
	base := dbtest.New(t)
	file := filepath.Join(t.TempDir(), "checkpoints.log")
	ctx, stop := context.WithCancel(context.Background())
	var writers, signers sync.WaitGroup
	for p := range 2 {
		d := base.Open(t, dbtest.Server)
		team := dbtest.NewTeam(t, d, "demo")
		for w := range 4 {
			id := team.Converse(t, d)
			writers.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					if _, err := d.Execute(context.Background(), team.Message(id, strconv.Itoa(i)), dbtest.Meta(team.Actor())); err != nil {
						t.Errorf("writer %d of %d: %v", w, p, err)
					}
				}
			})
		}
		c := audit.NewCheckpointer(d, file, quiet)
		signers.Go(func() {
			for ctx.Err() == nil {
				if _, err := c.Once(context.Background()); err != nil {
					t.Errorf("checkpoint: %v", err)
				}
			}
		})
	}
	conn := base.Conn(t, dbtest.Server)
	var reports []audit.Report
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		report, err := audit.Verify(t.Context(), conn, audit.VerifyOptions{Verifier: base.Keys.Verifier, CheckpointFile: file})
		if err != nil {
			t.Errorf("verify: %v", err)
			break
		}
		reports = append(reports, report)
	}
	stop()
	writers.Wait()
	signers.Wait()
	last := reports[len(reports)-1]
	t.Logf("%d times green; at the end %d positions, %d checkpoints", len(reports), last.Head, last.Checkpoints)
	if len(reports) < 5 || last.Head <= reports[0].Head || last.Checkpoints < 5 {
		t.Errorf("first %+v, last %+v", reports[0], last)
	}
}

func TestVerifyThatCannotLookIsNoFinding(t *testing.T) {
	f := newFixture(t)
	o := f.options()
	o.CheckpointFile = t.TempDir() // a folder cannot be read as a file
	if _, err := audit.Verify(t.Context(), f.owner, o); err == nil || isBroken(err) {
		t.Errorf("unreadable file: %v", err)
	}
	o = f.options()
	conn := f.Conn(t, "")
	conn.Close(t.Context())
	if _, err := audit.Verify(t.Context(), conn, o); err == nil || isBroken(err) {
		t.Errorf("no database: %v", err)
	}
}

func TestVerifyWithAnotherKey(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	other, err := db.LoadKeyring(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	o := f.options()
	o.Verifier = other.Verifier
	for _, file := range []string{f.file, ""} {
		o.CheckpointFile = file
		_, err = audit.Verify(t.Context(), f.owner, o)
		if !isBroken(err) || !strings.Contains(err.Error(), "public key of this log") {
			t.Errorf("%v", err)
		}
	}
}
