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

const stopTimeout = 60 * time.Second

// Close ends this use. The last user of the data folder stops the server: fast
// shutdown, open transactions are rolled back, then up to 60 s until its last
// process is gone (*StillRunning names what is left). It needs no context,
// because it is called when that is cancelled. A second Close does nothing.
func (c *Cluster) Close() error {
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.users == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout+readyTimeout) // somebody may be starting
	defer cancel()
	start, err := lockFile(ctx, filepath.Join(c.dir, startLock), unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("closing the cluster in %s: %w", c.dir, err)
	}
	_, err = c.release()
	return errors.Join(err, start.Close())
}

// release runs under start.lock, so the last user stops the server before anybody can come to use it.
func (c *Cluster) release() (stopped bool, err error) {
	last, err := tryLock(c.users, unix.LOCK_EX)
	if last {
		err = c.stop()
	}
	err = errors.Join(err, c.users.Close())
	c.users = nil
	return last && err == nil, err
}

func (c *Cluster) stop() error {
	for began, asked, orphanedAt := time.Now(), 0, (time.Time{}); ; {
		life, err := c.takeLife()
		if err != nil {
			return err
		}
		if life != nil {
			reap(c.child)
			c.child = 0
			return errors.Join(c.removeSocket(), life.Close())
		}
		// Asked once: a second SIGINT adds nothing. A server too young for its pid file is known as our child.
		if pid := c.target(); pid != 0 && pid != asked {
			c.say("stopping PostgreSQL in %s (pid %d)", c.data, pid)
			if err := unix.Kill(pid, unix.SIGINT); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("stopping PostgreSQL in %s, pid %d: %w", c.data, pid, err)
			}
			asked = pid
		} else if pid == 0 {
			orphanedAt = c.quitOrphans(orphanedAt)
		}
		if time.Since(began) > c.patience {
			return &StillRunning{Dir: c.data, Pids: c.left(), After: c.patience}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (c *Cluster) target() int {
	if pid := c.postmaster(); pid != 0 {
		return pid
	}
	if c.child != 0 && isPostmaster(c.child, c.account.uid, c.data) {
		return c.child
	}
	return 0
}

func (c *Cluster) left() []int {
	var pids []int
	if pid := c.target(); pid != 0 {
		pids = append(pids, pid)
	}
	return append(pids, orphans(c.name, c.account.uid)...)
}

// removeSocket tidies a short socket folder outside DIR.
func (c *Cluster) removeSocket() error {
	if filepath.Base(c.socket) != c.name {
		return nil
	}
	if err := os.Remove(c.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the socket folder: %w", err)
	}
	return nil
}
