package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A test cluster that ran without fsync is thrown away after a restart of the
// machine, and only then: not after a crash of the server, never with fsync.
func TestTornDisposableClusterIsThrownAway(t *testing.T) {
	dir := folder(t)
	o := Options{Dir: dir, Disposable: true, Log: testLog{t}}
	crash := func(want string) {
		t.Helper()
		c, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := query(t, c, "select to_regclass('kept') is not null"); got != want {
			t.Errorf("kept: %s, expected %s", got, want)
		}
		query(t, c, "create table if not exists kept ()")
		query(t, c, "checkpoint") // synchronous_commit is off as well
		kill9(t, c.Pid())
		for end := time.Now().Add(10 * time.Second); len(orphans(c.name, c.account.uid)) > 0 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		shut(t, c)
	}
	crash("f")
	crash("t")
	if err := os.WriteFile(filepath.Join(dir, bootName), []byte("another boot"), 0o600); err != nil {
		t.Fatal(err)
	}
	crash("f")

	_, err := Open(t.Context(), Options{Dir: folder(t), Disposable: true, Fsync: true})
	if err == nil {
		t.Error("a durable cluster was taken as disposable")
	}
}

func TestCancelledInitLeavesNothing(t *testing.T) {
	dir := folder(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, Options{Dir: dir})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "postgres.init*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	shut(t, open(t, dir))
}
