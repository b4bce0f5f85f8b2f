package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	freezeWait = 200 * time.Millisecond // a process in an uninterruptible call freezes late
	killAgain  = 100 * time.Millisecond
)

// Kill kills every process of the group and waits until none is left. A
// group that does not exist is empty.
func (g *Group) Kill(ctx context.Context) error {
	if empty, err := g.Empty(); err == nil && empty {
		return nil
	}
	for {
		if err := g.killOnce(ctx); err != nil {
			return fmt.Errorf("kill cgroup %s: %w", g.Path, err)
		}
		again := time.Now().Add(killAgain)
		for pause := 200 * time.Microsecond; time.Now().Before(again); pause = min(2*pause, 10*time.Millisecond) {
			empty, err := g.Empty()
			if err != nil || empty {
				return err
			}
			if err := sleep(ctx, pause); err != nil {
				return fmt.Errorf("cgroup %s still has processes: %w", g.Path, err)
			}
		}
	}
}

func (g *Group) killOnce(ctx context.Context) error {
	if g.version == 2 {
		err := write(g.base, "cgroup.kill", "1")
		if errors.Is(err, fs.ErrNotExist) && !g.Exists() {
			return nil
		}
		return err
	}
	// Frozen processes cannot fork, so none escapes the list that is read;
	// the signal takes effect at the thaw, which must happen in any case.
	if err := g.freeze(ctx); err != nil {
		return err
	}
	var err error
	for _, d := range g.hand { // a worker that died early may have filled only some
		err = errors.Join(err, signalAll(d))
	}
	err = errors.Join(err, signalAll(g.payload[0]))
	thaw := write(g.base, "freezer.state", "THAWED")
	if errors.Is(thaw, fs.ErrNotExist) {
		thaw = nil
	}
	return errors.Join(err, thaw)
}

// Freeze stops every process of the group and waits until all stand still, or
// some cannot in time.
func (g *Group) Freeze(ctx context.Context) error {
	if g.version == 1 {
		return g.freeze(ctx)
	}
	if err := write(g.base, "cgroup.freeze", "1"); err != nil {
		return err
	}
	for end := time.Now().Add(freezeWait); time.Now().Before(end); {
		if n := value(g.base, "cgroup.events", "frozen"); n != nil && *n == 1 {
			return nil
		}
		if err := sleep(ctx, 200*time.Microsecond); err != nil {
			return err
		}
	}
	return nil
}

// Thaw lets them go on.
func (g *Group) Thaw() error {
	if g.version == 1 {
		return write(g.base, "freezer.state", "THAWED")
	}
	return write(g.base, "cgroup.freeze", "0")
}

func (g *Group) freeze(ctx context.Context) error {
	err := write(g.base, "freezer.state", "FROZEN")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for end := time.Now().Add(freezeWait); time.Now().Before(end); {
		b, err := os.ReadFile(g.base + "/freezer.state")
		if err != nil || strings.TrimSpace(string(b)) == "FROZEN" || sleep(ctx, 200*time.Microsecond) != nil {
			return nil // not frozen in time: the next round kills what forked
		}
	}
	return nil
}

func signalAll(dir string) error {
	pids, err := procs(dir)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if pid == os.Getpid() {
			return errors.New("the group contains the process that asks")
		}
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return nil
}

// Empty tells whether no process, not even a dying one, is in the group.
func (g *Group) Empty() (bool, error) {
	if g.version == 2 {
		b, err := os.ReadFile(g.base + "/cgroup.events")
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		return strings.Contains(string(b), "populated 0"), err
	}
	for _, d := range g.all {
		b, err := os.ReadFile(d + "/tasks")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if len(b) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// Remove removes the folders of an empty group, waiting for the kernel to
// let go of the last process.
func (g *Group) Remove(ctx context.Context) error {
	for _, d := range g.all {
		for {
			err := syscall.Rmdir(d)
			if err == nil || errors.Is(err, syscall.ENOENT) {
				break
			}
			if !errors.Is(err, syscall.EBUSY) {
				return fmt.Errorf("remove %s: %w", d, err)
			}
			if sleep(ctx, time.Millisecond) != nil {
				return fmt.Errorf("remove %s: %w", d, err)
			}
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
