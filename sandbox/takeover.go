package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"cairn/sandbox/cgroup"
)

// KillGroup kills the sandbox whose [Instance.Cgroup] was recorded as path,
// waits until no process of it is left and removes its control group. It is
// how a new worker takes over from a dead one, from any process of the same
// host with the same rights. A group that is gone already is no error.
func KillGroup(ctx context.Context, path string) error {
	tree, err := cgroup.Detect()
	if err != nil {
		return err
	}
	g, err := tree.Open(path)
	if err != nil {
		return err
	}
	if err := g.Kill(ctx); err != nil {
		return err
	}
	return g.Remove(ctx)
}

// lockWait bounds the wait for a run folder. A worker killed between a clone
// and the exec leaves a child that holds its lock for a moment longer.
const lockWait = time.Second

// lockRun locks the run folder for this process. The kernel frees the lock
// when the process ends, in whatever way.
func lockRun(ctx context.Context, dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(5 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) && time.Now().Before(end) && ctx.Err() == nil {
			continue
		}
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, fmt.Errorf("lock run folder %s: %w", dir, err)
	}
}
