package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// errNotObservable marks what this worker has no means to see.
var errNotObservable = errors.New("not observable")

// mount is one line of /proc/PID/mountinfo (see proc_pid_mountinfo(5)).
type mount struct {
	dev, root, point, fstype string
	options                  []string
}

func readMounts(path string) ([]mount, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []mount
	for line := range strings.Lines(string(b)) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		l, r := strings.Fields(before), strings.Fields(after)
		if !ok || len(l) < 6 || len(r) < 2 {
			return nil, fmt.Errorf("%s: cannot read %q", path, line)
		}
		list = append(list, mount{dev: l[2], root: l[3], point: l[4], options: strings.Split(l[5], ","), fstype: r[0]})
	}
	return list, nil
}

// last gives the topmost mount on a point.
func last(list []mount, point string) (mount, error) {
	for _, m := range slices.Backward(list) {
		if m.point == point {
			return m, nil
		}
	}
	return mount{}, fmt.Errorf("nothing is mounted on %s", point)
}

func (m mount) want(fstype string, options ...string) error {
	if fstype != "" && m.fstype != fstype {
		return fmt.Errorf("%s is %s, expected %s", m.point, m.fstype, fstype)
	}
	for _, o := range options {
		if !slices.Contains(m.options, o) {
			return fmt.Errorf("%s is mounted %s, expected %s", m.point, strings.Join(m.options, ","), o)
		}
	}
	return nil
}

// root: a read-only tmpfs is the root, and no mount shows the root of a file
// system that is the root of the worker's own.
func (c canary) root() error {
	ours, err := readMounts("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	host, err := last(ours, "/")
	if err != nil {
		return err
	}
	root, err := last(c.mounts, "/")
	if err != nil {
		return err
	}
	for _, m := range c.mounts {
		if m.dev == host.dev && m.root == host.root {
			return fmt.Errorf("the host's root is mounted on %s", m.point)
		}
	}
	if err := root.want("tmpfs"); err != nil {
		return err
	}
	return c.rootOfNamespace()
}

// rootOfNamespace enters the canary's mount namespace, which puts a thread at
// the true root of it, and compares that with the canary's own root: after a
// mere chroot they differ, and /proc/PID/mountinfo would not show it.
func (c canary) rootOfNamespace() error {
	if c.prep.slot == nil {
		return fmt.Errorf("%w: an unprivileged worker cannot enter the mount namespace", errNotObservable)
	}
	return c.compareRoots()
}

// onLostThread runs f on a thread that ends afterwards, so that f may change
// its namespaces. The first thread of a process never ends and is what
// /proc/self shows; when the goroutine meets it, it holds it and lets another
// do the work.
func onLostThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			result <- onLostThread(f)
			return
		}
		result <- f() // never unlocked: the thread ends with the goroutine
	}()
	return <-result
}

func (c canary) compareRoots() error {
	var theirs, namespace unix.Stat_t
	if err := unix.Stat(c.dir+"/root", &theirs); err != nil {
		return err
	}
	f, err := os.Open(c.dir + "/ns/mnt")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the mount namespace: %w", err)
	}
	if err := unix.Stat("/", &namespace); err != nil {
		return err
	}
	if theirs.Dev != namespace.Dev || theirs.Ino != namespace.Ino {
		return errors.New("the root is not that of the mount namespace: another file system lies behind it")
	}
	return nil
}

func (c canary) system() error {
	points := []string{"/", "/usr", "/dev"}
	for _, m := range c.prep.spec.Mounts {
		points = append(points, m.Target)
	}
	for _, p := range points {
		m, err := last(c.mounts, p)
		if err != nil {
			return err
		}
		if err := m.want("", "ro", "nosuid"); err != nil {
			return err
		}
	}
	writable := []string{"/proc", "/tmp", agentHome, "/workspace", "/dev/shm", "/dev/pts"}
	for _, m := range c.mounts {
		if strings.HasPrefix(m.point, "/dev/") || slices.Contains(writable, m.point) {
			continue
		}
		if err := m.want("", "ro"); err != nil {
			return err
		}
	}
	return nil
}

func (c canary) workspace() error {
	m, err := last(c.mounts, "/workspace")
	if err != nil {
		return err
	}
	return m.want("overlay", "rw", "nosuid", "nodev")
}
