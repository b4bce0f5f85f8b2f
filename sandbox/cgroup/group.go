package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Group is one sandbox's control group.
type Group struct {
	Path    string
	version int
	base    string   // version 1: in the freezer
	cpu     string   // version 1: in cpuacct, empty when not mounted
	hand    []string // folders that the hand joins
	payload []string // folders that the payload joins
	all     []string // every folder, children first
	on      []string // version 2: controllers in use
}

// Limits of the payload.
type Limits struct {
	Memory uint64 // bytes
	Pids   uint64 // processes and threads
}

// Create makes the folders and sets the bounds. An existing group is an
// error: see Exists.
func (g *Group) Create(l Limits) error {
	if g.version == 2 {
		if err := g.delegate(filepath.Dir(filepath.Dir(g.base)), filepath.Dir(g.base)); err != nil {
			return err
		}
	}
	for i := len(g.all) - 1; i >= 0; i-- {
		if err := os.MkdirAll(filepath.Dir(g.all[i]), 0o755); err != nil {
			return err
		}
		if err := os.Mkdir(g.all[i], 0o755); err != nil {
			return err
		}
		if g.version == 2 && g.all[i] == g.base {
			if err := g.delegate(g.base); err != nil {
				return err
			}
		}
	}
	return g.bound(l)
}

// delegate makes the controllers available to the children of each folder.
func (g *Group) delegate(folders ...string) error {
	for _, f := range folders {
		if err := os.MkdirAll(f, 0o755); err != nil {
			return err
		}
		for _, c := range g.on {
			if err := write(f, "cgroup.subtree_control", "+"+c); err != nil {
				return fmt.Errorf("%w (a group with processes of its own cannot have children with controllers: start the worker in a child group)", err)
			}
		}
	}
	return nil
}

// bound limits the payload, and the whole group by a reserve more. No limits
// leave it unbounded.
func (g *Group) bound(l Limits) error {
	if l == (Limits{}) {
		return nil
	}
	set := func(whole, payload, file string, value, reserve uint64) error {
		return errors.Join(
			write(whole, file, strconv.FormatUint(value+reserve, 10)),
			write(payload, file, strconv.FormatUint(value, 10)))
	}
	if g.version == 1 {
		return errors.Join(
			set(g.hand[0], g.payload[0], "pids.max", l.Pids, ReservePids),
			set(g.hand[1], g.payload[1], "memory.limit_in_bytes", l.Memory, ReserveMemory))
	}
	var err error
	if slices.Contains(g.on, "pids") {
		err = set(g.base, g.payload[0], "pids.max", l.Pids, ReservePids)
	}
	if slices.Contains(g.on, "memory") {
		err = errors.Join(err, set(g.base, g.payload[0], "memory.max", l.Memory, ReserveMemory))
	}
	return err
}

// Exists tells whether any folder of the group is there.
func (g *Group) Exists() bool {
	for _, d := range g.all {
		if _, err := os.Stat(d); err == nil {
			return true
		}
	}
	return false
}

// AddHand moves a whole process into the hand's part.
func (g *Group) AddHand(pid int) error {
	for _, d := range g.hand {
		if err := write(d, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

// Entrance gives what the hand needs to put programs into the payload's
// part: version 1, open "tasks" files for its forking thread; version 2, the
// open folder for clone3, made writable for owner (uid and gid).
func (g *Group) Entrance(owner int) (tasks []*os.File, folder *os.File, err error) {
	if g.version == 2 {
		for _, d := range []string{g.base, g.payload[0]} {
			if err := os.Chown(d+"/cgroup.procs", owner, owner); err != nil {
				return nil, nil, err
			}
		}
		folder, err = os.Open(g.payload[0])
		return nil, folder, err
	}
	for _, d := range g.payload {
		f, err := os.OpenFile(d+"/tasks", os.O_WRONLY, 0)
		if err != nil {
			for _, t := range tasks {
				t.Close()
			}
			return nil, nil, err
		}
		tasks = append(tasks, f)
	}
	return tasks, nil, nil
}

// Payload lists the processes of the payload, by the worker's numbers.
func (g *Group) Payload() ([]int, error) { return procs(g.payload[0]) }

// Member checks that a process is in every part where a payload belongs, by
// what the kernel lists in the groups themselves.
func (g *Group) Member(pid int) error {
	folders := append([]string{}, g.payload...)
	if g.version == 1 {
		folders = append(folders, g.base)
	}
	for _, d := range folders {
		pids, err := procs(d)
		if err != nil {
			return err
		}
		if !slices.Contains(pids, pid) {
			return fmt.Errorf("process %d is not in %s", pid, d)
		}
	}
	return nil
}

// Bounded checks that the payload's part has the limits, as the kernel has
// them: it may round memory down to a page.
func (g *Group) Bounded(l Limits) error {
	pids, memory, folder := "pids.max", "memory.limit_in_bytes", g.payload[len(g.payload)-1]
	if g.version == 2 {
		memory = "memory.max"
		if len(g.on) == 0 {
			return fmt.Errorf("no controller bounds %s", folder)
		}
	}
	if n := number(g.payload[0], pids); n == nil || *n != l.Pids {
		return fmt.Errorf("%s of %s is not %d", pids, g.payload[0], l.Pids)
	}
	if n := number(folder, memory); n == nil || *n > l.Memory || *n+65536 < l.Memory {
		return fmt.Errorf("%s of %s is not %d", memory, folder, l.Memory)
	}
	return nil
}

func number(dir, file string) *uint64 {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

func procs(dir string) ([]int, error) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, f := range strings.Fields(string(b)) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, fmt.Errorf("%s/cgroup.procs: %w", dir, err)
		}
		pids = append(pids, n)
	}
	return pids, nil
}

func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("write %q: %w", value, err)
	}
	return nil
}
