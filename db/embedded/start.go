package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	readyTimeout = 60 * time.Second
	orphanGrace  = 2 * time.Second // backends notice a dead postmaster themselves, unless they compute
	logLimit     = 16 << 20
)

// ensure leaves the cluster running and ready, under start.lock.
func (c *Cluster) ensure(ctx context.Context) error {
	deadline, orphanedAt := time.Now().Add(readyTimeout), time.Time{}
	for {
		life, err := c.takeLife()
		if err != nil {
			return err
		}
		if life != nil {
			if c.child != 0 {
				return errors.Join(c.died(), life.Close())
			}
			err := c.launch(ctx, life)
			if err = errors.Join(err, life.Close()); err != nil {
				return err
			}
			deadline = time.Now().Add(readyTimeout)
		}
		err = c.probe(ctx)
		if err == nil || !errors.Is(err, errNotReady) {
			return err
		}
		if time.Now().After(deadline) {
			return &StartFailed{Dir: c.data, Why: fmt.Sprintf("was not ready after %s (%v)", readyTimeout, err), Tail: c.tail()}
		}
		orphanedAt = c.quitOrphans(orphanedAt)
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for PostgreSQL in %s: %w", c.data, err)
		}
	}
}

// Revive starts the server again when it has died under its users, at the place where it was, and waits until
// it answers. A server that answers is left alone, and so is a closed use. URL and Version are not to be asked meanwhile.
func (c *Cluster) Revive(ctx context.Context) error {
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.users == nil {
		return nil
	}
	start, err := lockFile(ctx, filepath.Join(c.dir, startLock), unix.LOCK_EX)
	if err != nil {
		return full(c.dir, "locking", err)
	}
	defer start.Close() // nothing was written through it
	child := c.child
	c.child = 0 // its death is not that of a server which this start made
	err = c.ensure(ctx)
	if reap(child); c.child == 0 && c.postmaster() == child {
		c.child = child
	}
	return err
}

// takeLife returns the locked life lock when nothing of the cluster runs, else nil.
func (c *Cluster) takeLife() (*os.File, error) {
	f, err := openLock(filepath.Join(c.dir, lifeLock))
	if err != nil {
		return nil, full(c.dir, "locking", err)
	}
	free, err := tryLock(f, unix.LOCK_EX)
	if free && c.postmaster() == 0 {
		return f, nil
	}
	return nil, errors.Join(err, f.Close()) // alive, or started by hand without the lock
}

// postmaster is the pid of the running server, 0 when none can be seen.
func (c *Cluster) postmaster() int {
	p, ok := readPidFile(c.data)
	if ok && isPostmaster(p.pid, c.account.uid, c.data) {
		return p.pid
	}
	return 0
}

// quitOrphans ends backends that outlive their postmaster: they block the next
// start. since is when it was first seen dead.
func (c *Cluster) quitOrphans(since time.Time) time.Time {
	if c.postmaster() != 0 {
		return time.Time{}
	}
	if since.IsZero() {
		return time.Now()
	}
	if time.Since(since) < orphanGrace {
		return since
	}
	for _, pid := range orphans(c.name, c.account.uid) {
		c.say("ending backend %d, whose postmaster is dead", pid)
		_ = unix.Kill(pid, unix.SIGQUIT) // ended by itself meanwhile: fine
	}
	return time.Now()
}

// launch starts the server; life is handed on to it.
func (c *Cluster) launch(ctx context.Context, life *os.File) error {
	if err := c.discardIfTorn(); err != nil {
		return err
	}
	if err := c.clean(); err != nil {
		return err
	}
	major, err := inspect(c.data)
	if err != nil {
		return err
	}
	bin, err := c.binaries(ctx, major)
	if err != nil {
		return err
	}
	if err := errors.Join(admit(c.account, c.dir), c.account.reach(c.dir, bin)); err != nil {
		return err
	}
	if major == 0 {
		if err := c.initialise(ctx, bin, life); err != nil {
			return err
		}
	}
	c.say("starting PostgreSQL %s in %s", bin.Version, c.data)
	return c.spawn(bin, life)
}

func (c *Cluster) binaries(ctx context.Context, major int) (Binaries, error) {
	if bin := c.options.Binaries; bin.Dir != "" {
		if major != 0 && bin.Major != major {
			return bin, &WrongVersion{Dir: c.data, Major: major, Found: []Binaries{bin}}
		}
		return bin, nil
	}
	return Find(ctx, FindOptions{Major: major, DataDir: c.data, account: &c.account})
}

// spawn starts the postmaster in a session of its own: Ctrl-C in a terminal is
// for Cairn, and the server must outlive whoever started it.
func (c *Cluster) spawn(bin Binaries, life *os.File) error {
	socket := chooseSocket(c.account, c.dir)
	if err := makeSocketDir(c.account, socket); err != nil {
		return err
	}
	log, err := c.openLog()
	if err != nil {
		return full(c.dir, "opening "+logName, err)
	}
	defer log.Close()
	cmd := c.account.command("/", bin.path("postgres"), c.arguments(socket)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{life}
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running postgres as %s: %w", c.account.name, err)
	}
	c.child, c.socket, c.port = cmd.Process.Pid, socket, port
	return cmd.Process.Release() // reaped by pid: no goroutine waits as long as the server lives
}

func (c *Cluster) arguments(socket string) []string {
	args := []string{"-D", c.data}
	all := maps.Clone(c.settings)
	all["unix_socket_directories"] = quoted(socket)
	all["port"] = fmt.Sprint(port)
	all["cluster_name"] = c.name
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "-c", name+"="+all[name])
	}
	return args
}

func (c *Cluster) openLog() (*os.File, error) {
	path := filepath.Join(c.dir, logName)
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	c.logFrom, err = log.Seek(0, io.SeekEnd)
	return log, errors.Join(err, bequeath(log))
}

// died explains an early end by the last lines of the log.
func (c *Cluster) died() error {
	how := reap(c.child)
	c.child = 0
	tail := c.tail()
	if strings.Contains(tail, "No space left on device") {
		return &DiskFull{Dir: c.dir, Doing: "starting the server", Free: freeBytes(c.dir)}
	}
	return &StartFailed{Dir: c.data, Why: "ended while starting: it " + how, Tail: tail}
}

// tail is what the server said since this start, its last lines.
func (c *Cluster) tail() string {
	f, err := os.Open(filepath.Join(c.dir, logName))
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, c.logFrom, logLimit))
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text))
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
