package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// openLock opens a lock file without locking it. Lock files are never removed:
// two processes could then hold locks on two files of one name.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
	if err := bequeath(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
	return f, nil
}

// bequeath gives a file that root made to the owner of its folder, who may come next.
func bequeath(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := ownerOf(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	return f.Chown(uid, gid)
}

// tryLock reports whether the lock was had at once. A shared lock that is
// refused an upgrade is lost (flock(2)).
func tryLock(f *os.File, how int) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, fmt.Errorf("locking %s: %w", f.Name(), err)
		}
	}
}

// lockFile opens path and waits for the lock; closing the file releases it.
func lockFile(ctx context.Context, path string, how int) (*os.File, error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	for {
		had, err := tryLock(f, how)
		if had {
			return f, nil
		}
		if err == nil {
			err = sleep(ctx, 10*time.Millisecond)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("waiting for %s: %w", path, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
