// Package cgroup puts a sandbox into control groups of its own, bounds its
// processes and memory, and kills it as a whole. It imports the standard
// library only and speaks both versions of the kernel's interface; the names
// of files are those of the kernel's admin guide (cgroup-v1 and cgroup-v2).
//
// A group has a path below the hierarchy, such as /cairn/0198, the same in
// every controller, so that another process can find and kill it:
//
//	made (empty) -> hand joins -> payload joins -> killed -> empty -> removed
//
// Layout. Version 1: the hand lives in PATH and the payload in PATH/payload
// of the controllers pids and memory; freezer and cpuacct hold both in PATH.
// Version 2: PATH/hand and PATH/payload. The payload's bound is lower than
// the whole group's by a reserve, so that a bomb cannot starve the hand.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Reserve of the hand above what the payload may use.
const (
	ReserveMemory = 64 << 20 // bytes
	ReservePids   = 128      // processes and threads
)

// ErrUnavailable means that this host has no usable hierarchy; the text says
// which controller is missing and what to do.
var ErrUnavailable = errors.New("control groups are not usable")

// Tree is the host's hierarchy.
type Tree struct {
	v1 map[string]string // controller -> mount point
	v2 string            // mount point, when the controllers are there
	on []string          // version 2: controllers that bound a group
}

// V2 gives the version 2 hierarchy at mount. Only the named controllers (of
// pids and memory) bound its groups: with none, a group can still be killed.
func V2(mount string, controllers ...string) *Tree { return &Tree{v2: mount, on: controllers} }

// Version is 1 or 2.
func (t *Tree) Version() int {
	if t.v2 != "" {
		return 2
	}
	return 1
}

// Detect reads which hierarchy carries pids, memory and freezing.
func Detect() (*Tree, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer f.Close()
	return detect(f)
}

func detect(mountinfo io.Reader) (*Tree, error) {
	v1, v2 := map[string]string{}, ""
	for sc := bufio.NewScanner(mountinfo); sc.Scan(); {
		before, after, ok := strings.Cut(sc.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		switch right[0] {
		case "cgroup2":
			v2 = left[4]
		case "cgroup":
			for _, o := range strings.Split(right[2], ",") {
				v1[o] = left[4]
			}
		}
	}
	if v1["pids"] != "" && v1["memory"] != "" && v1["freezer"] != "" {
		return &Tree{v1: v1}, nil
	}
	if v2 == "" {
		return nil, fmt.Errorf("%w: neither cgroup2 nor the version 1 controllers pids, memory and freezer are mounted; mount cgroup2 on /sys/fs/cgroup", ErrUnavailable)
	}
	have, err := os.ReadFile(filepath.Join(v2, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for _, c := range []string{"pids", "memory"} {
		if !slices.Contains(strings.Fields(string(have)), c) {
			return nil, fmt.Errorf("%w: %s has no controller %s; enable it in the kernel or delegate it", ErrUnavailable, v2, c)
		}
	}
	return V2(v2, "pids", "memory"), nil
}

var validPath = regexp.MustCompile(`^(/[A-Za-z0-9][A-Za-z0-9_.-]{0,127}){2,4}$`)

// Open gives the group at path, which need not exist. Short paths are
// refused: killing one would reach processes that are no sandbox.
func (t *Tree) Open(path string) (*Group, error) {
	if !validPath.MatchString(path) {
		return nil, fmt.Errorf("cgroup path %q: want two to four names such as /cairn/ID", path)
	}
	if t.v2 != "" {
		base := t.v2 + path
		return &Group{
			Path: path, version: 2, base: base, on: t.on,
			hand: []string{base + "/hand"}, payload: []string{base + "/payload"},
			all: []string{base + "/payload", base + "/hand", base},
		}, nil
	}
	g := &Group{Path: path, version: 1, base: t.v1["freezer"] + path}
	for _, c := range []string{"pids", "memory"} {
		g.payload = append(g.payload, t.v1[c]+path+"/payload")
		g.hand = append(g.hand, t.v1[c]+path)
	}
	g.hand = append(g.hand, g.base)
	if cpu := t.v1["cpuacct"]; cpu != "" {
		g.hand = append(g.hand, cpu+path)
		g.cpu = cpu + path
	}
	g.all = append(append([]string{}, g.payload...), g.hand...)
	return g, nil
}
