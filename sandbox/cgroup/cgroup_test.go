package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDetect(t *testing.T) {
	const v1 = "35 30 0:30 / /cg/pids rw - cgroup cgroup rw,pids\n36 30 0:31 / /cg/mem rw - cgroup cgroup rw,memory\n37 30 0:32 / /cg/frz rw - cgroup cgroup rw,freezer\n38 30 0:33 / /cg/cpu rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n"
	dir := t.TempDir()
	v2 := "40 30 0:40 / " + dir + " rw - cgroup2 cgroup2 rw\n"
	controllers := func(s string) {
		if err := os.WriteFile(dir+"/cgroup.controllers", []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	controllers("cpu memory pids\n")
	for text, version := range map[string]int{v1: 1, v1 + v2: 1, v2: 2} {
		tree, err := detect(strings.NewReader(text))
		if err != nil || tree.Version() != version {
			t.Errorf("%q: %v", text, err)
		}
	}
	tree, _ := detect(strings.NewReader(v1))
	if g, err := tree.Open("/cairn/x"); err != nil || g.cpu != "/cg/cpu/cairn/x" || g.payload[1] != "/cg/mem/cairn/x/payload" || g.base != "/cg/frz/cairn/x" {
		t.Errorf("%+v %v", g, err)
	}
	controllers("cpu pids\n")
	if _, err := detect(strings.NewReader(v2)); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "memory") {
		t.Error(err)
	}
	if _, err := detect(strings.NewReader("")); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
}

// trees gives what this host has: its own hierarchy, and version 2 without
// controllers where that is mounted beside version 1.
func trees(t *testing.T) map[string]*Tree {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("needs root")
		}
		t.Skip("needs root")
	}
	own, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]*Tree{"own": own}
	if _, err := os.Stat("/sys/fs/cgroup/unified/cgroup.procs"); err == nil {
		m["v2"] = V2("/sys/fs/cgroup/unified")
	}
	return m
}

func TestLife(t *testing.T) {
	for name, tree := range trees(t) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			g, err := tree.Open(fmt.Sprintf("/cairn-sandbox-test/life-%d", os.Getpid()))
			if err != nil || g.Exists() {
				t.Fatal(err)
			}
			if err := g.Create(Limits{Memory: 256 << 20, Pids: 50}); err != nil || !g.Exists() {
				t.Fatal(err)
			}
			// Waits for its place, then leaves a crowd that forks all the time.
			c := exec.Command("/bin/sh", "-c", `read x; for n in 1 2 3 4 5; do (while :; do (/bin/true); done) & done; wait`)
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if err := g.AddHand(c.Process.Pid); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Write([]byte("go\n")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			if empty, err := g.Empty(); err != nil || empty {
				t.Error("not populated", err)
			}
			reaped := make(chan struct{})
			go func() { _ = c.Wait(); close(reaped) }()
			if err := g.Kill(ctx); err != nil {
				t.Fatal(err)
			}
			<-reaped
			if ws := c.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
				t.Error(ws)
			}
			if err := g.Remove(ctx); err != nil || g.Exists() {
				t.Error(err)
			}
			if err := errors.Join(g.Kill(ctx), g.Remove(ctx)); err != nil {
				t.Error("a group that is gone:", err)
			}
		})
	}
}

func TestKillRefusesItself(t *testing.T) {
	dir := t.TempDir() // a list of processes, not a real group
	if err := os.WriteFile(dir+"/cgroup.procs", fmt.Append(nil, os.Getpid()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := signalAll(dir); err == nil {
		t.Error("would have killed itself")
	}
}
