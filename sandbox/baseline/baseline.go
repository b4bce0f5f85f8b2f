// Package baseline starts a program by other means than this room's, to have
// something to measure against. Nothing of an agent is ever run by it. It
// imports the standard library, golang.org/x/sys and package seccomp.
package baseline

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"cairn/sandbox/seccomp"
)

// ErrNotInstalled means that there is nothing to compare with on this machine.
var ErrNotInstalled = errors.New("bubblewrap is not installed")

// Bubblewrap runs /bin/true with those controls that it has too: all
// namespaces, a read-only system, a /proc, /dev and /tmp of its own, no
// capability, and the same filter of system calls. It has no control group, no
// Landlock, no overlay, and nobody looks whether any of it is in force.
func Bubblewrap() error {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return ErrNotInstalled
	}
	filter, err := filterFile()
	if err != nil {
		return err
	}
	defer filter.Close()
	c := exec.Command(path, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000",
		"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--seccomp", "3", "/bin/true")
	c.ExtraFiles = []*os.File{filter}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("bubblewrap: %w: %s", err, out)
	}
	return nil
}

// filterFile holds the filter that the sandbox would have.
func filterFile() (*os.File, error) {
	p, err := seccomp.New(runtime.GOARCH, seccomp.Options{})
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("filter", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "filter")
	if _, err := f.Write(p.Bytes()); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(0, 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
