package sandbox

import (
	"context"
	"time"

	"cairn/sandbox/layer"
)

// Usage is what the whole sandbox has used; nil is unknown, and Unknown says
// why, by the name of the field.
type Usage struct {
	CPU         *uint64 `json:"cpu_nanoseconds"`
	PeakMemory  *uint64 `json:"peak_memory_bytes"`
	MemoryKills *uint64 `json:"memory_kills"`     // processes that the kernel ended for want of memory
	ForksDenied *uint64 `json:"forks_denied"`     // for the limit of processes
	DiskBytes   *uint64 `json:"disk_bytes"`       // of the upper layer
	DiskInodes  *uint64 `json:"disk_inodes"`      // of the upper layer
	Wall        int64   `json:"wall_nanoseconds"` // since it was prepared

	Unknown map[string]string `json:"unknown,omitempty"`
}

const measureTime = 2 * time.Second

// Usage reads the kernel's counters of the control group, and the upper layer.
func (i *Instance) Usage() Usage {
	u := Usage{Wall: time.Since(i.since).Nanoseconds(), Unknown: map[string]string{}}
	if i.prep.group != nil {
		g := i.prep.group.Usage()
		u.CPU, u.PeakMemory, u.MemoryKills, u.ForksDenied = g.CPU, g.PeakMemory, g.MemoryKills, g.ForksDenied
	}
	for name, v := range map[string]*uint64{"cpu_nanoseconds": u.CPU, "peak_memory_bytes": u.PeakMemory, "memory_kills": u.MemoryKills, "forks_denied": u.ForksDenied} {
		switch {
		case v != nil:
		case i.prep.group == nil:
			u.Unknown[name] = "not observable: the sandbox has no control group"
		default:
			u.Unknown[name] = "not observable: this kernel does not count it"
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), measureTime)
	defer cancel()
	size, err := layer.Measure(ctx, i.Upper())
	if err != nil {
		u.Unknown["disk_bytes"], u.Unknown["disk_inodes"] = err.Error(), err.Error()
	} else {
		u.DiskBytes, u.DiskInodes = &size.Bytes, &size.Inodes
	}
	return u
}

// hits gives the limits of memory and processes that were reached since it was
// last asked. Calls that run at once share what they reached.
func (i *Instance) hits() []Hit {
	if i.prep.group == nil {
		return nil
	}
	i.counters.Lock()
	defer i.counters.Unlock()
	kills, forks := i.prep.group.Refusals()
	var hits []Hit
	for n, c := range []struct {
		now     *uint64
		limit   string
		allowed uint64
	}{{kills, LimitMemory, i.spec.Limits.Memory}, {forks, LimitPids, i.spec.Limits.Pids}} {
		if c.now == nil || *c.now <= i.counted[n] {
			continue
		}
		hits = append(hits, Hit{Limit: c.limit, Count: *c.now - i.counted[n], Allowed: c.allowed, By: "kernel"})
		i.counted[n] = *c.now
	}
	return hits
}

// outputHits gives the streams of a call that were longer than what is kept.
func (i *Instance) outputHits(r *ExecResult) []Hit {
	var hits []Hit
	for _, o := range []Output{r.Stdout, r.Stderr} {
		if o.Truncated {
			total := uint64(o.Total)
			hits = append(hits, Hit{Limit: LimitOutput, Count: 1, Allowed: uint64(i.spec.Limits.Output), Measured: &total, By: "worker"})
		}
	}
	return hits
}
