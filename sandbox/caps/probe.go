// Package caps finds out what this host can do for a sandbox, by doing it:
// what a kernel, a container or a security module really allows cannot be
// read anywhere. It imports the standard library, golang.org/x/sys and the
// cgroup and layer packages.
package caps

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"cairn/sandbox/cgroup"
	"cairn/sandbox/layer"
)

// probeTimeout bounds each probe alone.
const probeTimeout = 5 * time.Second

// Capability is one thing tried. OK is nil when it could not be tried.
type Capability struct {
	Name   string `json:"name"`
	OK     *bool  `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// Capabilities is the result of all probes.
type Capabilities struct {
	BootID  string       `json:"boot_id"` // of the kernel that was probed
	Results []Capability `json:"results"`
}

// Has tells whether a probe succeeded.
func (c Capabilities) Has(name string) bool {
	for _, r := range c.Results {
		if r.Name == name {
			return r.OK != nil && *r.OK
		}
	}
	return false
}

// Failed gives every probe as unknown.
func Failed(err error) Capabilities {
	c := Capabilities{BootID: bootID()}
	for _, p := range probes("") {
		c.Results = append(c.Results, Capability{Name: p.name, Reason: err.Error()})
	}
	return c
}

type probe struct {
	name string
	try  func() error
}

var cache struct {
	sync.Mutex
	done  bool
	value Capabilities
}

// Probe runs the probes with exe, any executable that is only started and
// killed. The first complete result of this process is kept.
func Probe(ctx context.Context, exe string) Capabilities {
	cache.Lock()
	defer cache.Unlock()
	if cache.done {
		return cache.value
	}
	c := Capabilities{BootID: bootID()}
	for _, p := range probes(exe) {
		c.Results = append(c.Results, run(ctx, p))
	}
	cache.done, cache.value = ctx.Err() == nil, c
	return c
}

func run(ctx context.Context, p probe) Capability {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- p.try() }()
	select {
	case err := <-result:
		ok := err == nil
		c := Capability{Name: p.name, OK: &ok}
		if !ok {
			c.Reason = err.Error()
		}
		return c
	case <-ctx.Done():
		return Capability{Name: p.name, Reason: ctx.Err().Error()}
	}
}

func probes(exe string) []probe {
	list := []probe{
		{"uid_range", func() error { return userNS(exe, rangeMap(), rangeMap()) }},
		{"single_uid", func() error { return userNS(exe, singleMap(os.Geteuid()), singleMap(os.Getegid())) }},
	}
	for name, flag := range map[string]uintptr{
		"mount_namespace": syscall.CLONE_NEWNS, "pid_namespace": syscall.CLONE_NEWPID, "net_namespace": syscall.CLONE_NEWNET,
		"ipc_namespace": syscall.CLONE_NEWIPC, "uts_namespace": syscall.CLONE_NEWUTS, "cgroup_namespace": syscall.CLONE_NEWCGROUP,
	} {
		list = append(list, probe{name, func() error { return clone(exe, flag) }})
	}
	return append(list, probe{"idmapped_mount", func() error { return idmapped(exe) }}, probe{"cgroup", group})
}

func rangeMap() []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1_000_000_000, Size: layer.RangeSize}}
}

func singleMap(id int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: 1000, HostID: id, Size: 1}}
}

func userNS(exe string, uids, gids []syscall.SysProcIDMap) error {
	f, err := layer.UserNS(exe, uids, gids)
	if err != nil {
		return err
	}
	return f.Close()
}

// clone makes a namespace inside a user namespace, as the sandbox does. The
// program gets no connection and ends by itself; it is killed all the same.
func clone(exe string, flag uintptr) error {
	p, err := os.StartProcess(exe, []string{"probe"}, &os.ProcAttr{Env: []string{}, Sys: &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | flag, UidMappings: singleMap(os.Geteuid()), GidMappings: singleMap(os.Getegid()),
	}})
	if err != nil {
		return err
	}
	_ = p.Kill()
	_, err = p.Wait()
	return err
}

func idmapped(exe string) error {
	dir, err := os.MkdirTemp("", "cairn-probe-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	id, err := layer.UserNS(exe, rangeMap(), rangeMap())
	if err != nil {
		return err
	}
	defer id.Close()
	t, err := layer.Tree(dir, layer.Attr{ReadOnly: true, UserNS: id})
	if err != nil {
		return err
	}
	return t.Close()
}

func group() error {
	tree, err := cgroup.Detect()
	if err != nil {
		return err
	}
	g, err := tree.Open(fmt.Sprintf("/cairn/probe-%d", os.Getpid()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	if err := g.Create(cgroup.Limits{Memory: 1 << 30, Pids: 64}); err != nil {
		_ = g.Remove(ctx)
		return err
	}
	return g.Remove(ctx)
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
