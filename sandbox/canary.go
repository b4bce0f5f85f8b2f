package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"cairn/sandbox/cgroup"
	"cairn/sandbox/seccomp"
)

// canary is one process inside, read from outside. Every check gives nil
// when the kernel shows the control.
type canary struct {
	dir  string // /proc/PID
	pid  int
	prep *preparation

	mounts []mount           // of /proc/PID/mountinfo
	texts  map[string]string // files that were read: it does not change while it waits
	member func() error      // whether it is in its control group
}

func (c canary) checks() map[Control]func() error {
	m := map[Control]func() error{
		UserNamespace:       c.userNamespace,
		PivotRoot:           c.root,
		ReadonlySystem:      c.system,
		OverlayWorkspace:    c.workspace,
		NoNetwork:           c.network,
		Rlimits:             c.rlimits,
		CgroupKill:          c.cgroup,
		NoNewPrivs:          c.noNewPrivs,
		CapabilitiesDropped: c.capabilities,
		UIDRange:            c.uidRange,
		CgroupLimits:        c.limits,
		Seccomp:             c.filter,
	}
	for control := range namespaceFiles {
		if control != UserNamespace {
			m[control] = func() error { return c.otherNamespace(control) }
		}
	}
	return m
}

func (c canary) read(name string) (string, error) {
	if text, ok := c.texts[name]; ok {
		return text, nil
	}
	b, err := os.ReadFile(c.dir + "/" + name)
	if err == nil {
		c.texts[name] = string(b)
	}
	return string(b), err
}

func (c canary) otherNamespace(control Control) error {
	name := "/ns/" + namespaceFiles[control]
	ours, err := os.Readlink("/proc/self" + name)
	if err != nil {
		return err
	}
	theirs, err := os.Readlink(c.dir + name)
	if err != nil {
		return err
	}
	if ours == theirs {
		return fmt.Errorf("shares the worker's %s", ours)
	}
	return nil
}

func (c canary) userNamespace() error {
	if err := c.otherNamespace(UserNamespace); err != nil {
		return err
	}
	want := fmt.Sprintf("%d %d 1", agentID, os.Geteuid())
	uid := os.Geteuid()
	if s := c.prep.slot; s != nil {
		want, uid = fmt.Sprintf("0 %d %d", s.base, rangeSize), s.base+agentID
	}
	for _, name := range []string{"uid_map", "gid_map"} {
		got, err := c.read(name)
		if err != nil {
			return err
		}
		if name == "gid_map" && c.prep.slot == nil {
			want = fmt.Sprintf("%d %d 1", agentID, os.Getegid())
		}
		if got = strings.Join(strings.Fields(got), " "); got != want {
			return fmt.Errorf("%s is %q, expected %q", name, got, want)
		}
	}
	got, err := c.status("Uid")
	if err != nil {
		return err
	}
	for _, f := range strings.Fields(got) {
		if f != strconv.Itoa(uid) {
			return fmt.Errorf("runs as uids %q, expected %d", got, uid)
		}
	}
	return nil
}

func (c canary) status(key string) (string, error) {
	text, err := c.read("status")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", fmt.Errorf("/proc/PID/status has no %s", key)
}

func (c canary) noNewPrivs() error {
	v, err := c.status("NoNewPrivs")
	if err == nil && v != "1" {
		err = fmt.Errorf("NoNewPrivs is %s", v)
	}
	return err
}

func (c canary) capabilities() error {
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		v, err := c.status(set)
		if err != nil {
			return err
		}
		if strings.Trim(v, "0") != "" {
			return fmt.Errorf("%s is %s", set, v)
		}
	}
	return nil
}

func (c canary) rlimits() error {
	l := c.prep.spec.Limits
	want := map[string]uint64{"Max core file size": 0, "Max file size": l.FileSize, "Max open files": l.OpenFiles}
	if c.prep.group == nil {
		want["Max processes"] = l.Pids
	}
	text, err := c.read("limits")
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		for name, v := range want {
			rest, ok := strings.CutPrefix(line, name+" ")
			if !ok {
				continue
			}
			f, n := strings.Fields(rest), strconv.FormatUint(v, 10)
			if len(f) < 2 || f[0] != n || f[1] != n {
				return fmt.Errorf("%s is %q, expected %s", name, strings.TrimSpace(rest), n)
			}
			delete(want, name)
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("/proc/PID/limits lacks %v", want)
	}
	return nil
}

func (c canary) uidRange() error {
	if c.prep.slot == nil {
		return errors.New("has no range of ids")
	}
	return c.userNamespace()
}

func (c canary) limits() error {
	if c.prep.group == nil {
		return errors.New("no control group")
	}
	if err := c.member(); err != nil {
		return err
	}
	return c.prep.group.Bounded(cgroup.Limits{Memory: c.prep.spec.Limits.Memory, Pids: c.prep.spec.Limits.Pids})
}

// filter: in filter mode, and as far as the worker may ask, the kernel gives
// back the very program that was asked for.
func (c canary) filter() error {
	mode, err := c.status("Seccomp")
	if err != nil {
		return err
	}
	if mode != "2" {
		return fmt.Errorf("the mode of Seccomp is %s, expected 2", mode)
	}
	f := &c.prep.report.Filter
	program, err := c.readFilter()
	if err != nil {
		f.Reason = err.Error()
		return nil
	}
	hash := seccomp.Hash(program)
	f.Observed = &hash
	if hash != f.Requested {
		return fmt.Errorf("the filter in force has the hash %s", hash)
	}
	return nil
}

func (c canary) cgroup() error {
	if c.prep.group == nil {
		return errors.New("no control group")
	}
	return c.member()
}

// network: no interface but lo, no route.
func (c canary) network() error {
	dev, err := c.read("net/dev")
	if err != nil {
		return err
	}
	for line := range strings.Lines(dev) {
		name, _, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok && name != "lo" {
			return fmt.Errorf("has interface %s", name)
		}
	}
	routes, err := c.read("net/route")
	if err != nil {
		return err
	}
	if n := strings.Count(strings.TrimSpace(routes), "\n"); n > 0 {
		return fmt.Errorf("has %d routes", n)
	}
	six, err := c.read("net/ipv6_route")
	if errors.Is(err, os.ErrNotExist) {
		return nil // a kernel without IPv6
	}
	for line := range strings.Lines(six) {
		if f := strings.Fields(line); len(f) > 0 && f[len(f)-1] != "lo" {
			return fmt.Errorf("has an IPv6 route over %s", f[len(f)-1])
		}
	}
	return err
}
