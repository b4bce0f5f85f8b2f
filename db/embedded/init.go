package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// initialise makes the cluster in a sibling folder and renames it, so that a
// data directory is either absent or complete. initdb inherits the life lock:
// when we are killed, the next start waits for it to end.
func (c *Cluster) initialise(ctx context.Context, bin Binaries, life *os.File) error {
	c.say("initialising a PostgreSQL %s cluster in %s", bin.Version, c.data)
	work, err := os.MkdirTemp(c.dir, initPrefix)
	if err != nil {
		return full(c.dir, "initialising the cluster", err)
	}
	err = c.account.give(work)
	if err == nil {
		err = c.initdb(ctx, bin, work, life)
	}
	if err == nil {
		err = full(c.dir, "initialising the cluster", os.Rename(work, c.data))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	return full(c.dir, "initialising the cluster", syncDir(c.dir))
}

func (c *Cluster) initdb(ctx context.Context, bin Binaries, work string, life *os.File) error {
	args := []string{
		"-D", work, "-U", superuser, "--encoding=UTF8", "--locale=C.UTF-8", "--data-checksums",
		"--auth-local=trust", "--auth-host=reject", "--no-instructions",
	}
	if !c.options.Fsync {
		args = append(args, "--no-sync")
	}
	cmd := c.account.command("/", bin.path("initdb"), args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.ExtraFiles = []*os.File{life}
	cmd.SysProcAttr.Setsid = true // Ctrl-C reaches it through the context only
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running initdb as %s: %w", c.account.name, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // gone already is fine
	err := cmd.Wait()
	if !stop() {
		return fmt.Errorf("initialising %s: %w", c.data, context.Cause(ctx))
	}
	return c.initFailed(err, out.String())
}

func (c *Cluster) initFailed(err error, out string) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(out, "No space left on device"):
		return &DiskFull{Dir: c.dir, Doing: "initialising the cluster", Free: freeBytes(c.dir)}
	case strings.Contains(out, "could not look up effective user ID"):
		return &NoAccount{UID: c.account.uid}
	}
	return &StartFailed{Dir: c.data, Why: fmt.Sprintf("could not be initialised (initdb: %v)", err), Tail: lastLines(out)}
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// clean removes what dead processes left. Only the holder of start.lock and of the
// life lock may: then no process of the cluster exists, whatever postmaster.pid says.
func (c *Cluster) clean() error {
	leftovers, _ := filepath.Glob(filepath.Join(escape(c.dir), initPrefix+"*")) // fails only on a malformed pattern
	for _, dir := range leftovers {
		c.say("removing %s, an initialisation that was cut off", dir)
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing a cut-off initialisation: %w", err)
		}
	}
	left, crashed := readPidFile(c.data)
	if !crashed {
		return nil
	}
	c.say("the last server in %s (pid %d) did not shut down cleanly; it recovers now", c.data, left.pid)
	files := []string{filepath.Join(c.data, "postmaster.pid")}
	if left.socket != "" {
		s := socketFile(left.socket, left.port)
		files = append(files, s, s+".lock")
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing a leftover of a dead server: %w", err)
		}
	}
	return nil
}

// escape makes a path literal inside a glob pattern.
func escape(path string) string {
	var b bytes.Buffer
	for _, r := range []byte(path) {
		if bytes.IndexByte([]byte(`*?[\`), r) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(r)
	}
	return b.String()
}
