package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

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
	theirs, err := readMounts(c.dir + "/mountinfo")
	if err != nil {
		return err
	}
	root, err := last(theirs, "/")
	if err != nil {
		return err
	}
	for _, m := range theirs {
		if m.dev == host.dev && m.root == host.root {
			return fmt.Errorf("the host's root is mounted on %s", m.point)
		}
	}
	return root.want("tmpfs")
}

func (c canary) system() error {
	list, err := readMounts(c.dir + "/mountinfo")
	if err != nil {
		return err
	}
	points := []string{"/", "/usr", "/dev"}
	for _, m := range c.prep.spec.Mounts {
		points = append(points, m.Target)
	}
	for _, p := range points {
		m, err := last(list, p)
		if err != nil {
			return err
		}
		if err := m.want("", "ro", "nosuid"); err != nil {
			return err
		}
	}
	writable := []string{"/proc", "/tmp", agentHome, "/workspace", "/dev/shm", "/dev/pts"}
	for _, m := range list {
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
	list, err := readMounts(c.dir + "/mountinfo")
	if err != nil {
		return err
	}
	m, err := last(list, "/workspace")
	if err != nil {
		return err
	}
	return m.want("overlay", "rw", "nosuid", "nodev")
}
