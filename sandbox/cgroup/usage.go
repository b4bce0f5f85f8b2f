package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Usage of the whole group; nil where the kernel does not tell.
type Usage struct {
	CPU         *uint64 // nanoseconds, user and system
	PeakMemory  *uint64 // bytes
	MemoryKills *uint64 // processes of the payload, ended for want of memory
	ForksDenied *uint64 // of the payload, for the limit of processes
}

// Usage reads the counters.
func (g *Group) Usage() Usage {
	u := Usage{}
	u.MemoryKills, u.ForksDenied = g.Refusals()
	if g.version == 1 {
		u.PeakMemory = number(g.hand[1], "memory.max_usage_in_bytes")
		if g.cpu != "" {
			u.CPU = number(g.cpu, "cpuacct.usage")
		}
		return u
	}
	u.PeakMemory = number(g.base, "memory.peak")
	if n := value(g.base, "cpu.stat", "usage_usec"); n != nil {
		*n *= 1000
		u.CPU = n
	}
	return u
}

// Refusals counts what the bounds of the payload did.
func (g *Group) Refusals() (kills, forks *uint64) {
	if g.version == 1 {
		return value(g.payload[1], "memory.oom_control", "oom_kill"), value(g.payload[0], "pids.events", "max")
	}
	return value(g.payload[0], "memory.events", "oom_kill"), value(g.payload[0], "pids.events", "max")
}

// value reads one line of a file of names and numbers.
func value(dir, file, name string) *uint64 {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		key, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key != name {
			continue
		}
		if n, err := strconv.ParseUint(v, 10, 64); err == nil {
			return &n
		}
	}
	return nil
}
