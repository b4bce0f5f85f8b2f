package sandbox

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"cairn/sandbox/hand"
)

// Instance is a live sandbox. Its methods are safe for concurrent use.
type Instance struct {
	spec   Spec
	prep   *preparation
	client *hand.Client

	once  sync.Once
	close error
}

func newInstance(p *preparation) *Instance {
	return &Instance{spec: p.spec, prep: p, client: p.hand.client}
}

// Report tells which controls hold, as observed before the agent's first
// byte. The caller must not change it.
func (i *Instance) Report() *Report { return i.prep.report }

// Cgroup is the path to record for [KillGroup]; empty without cgroup_kill.
func (i *Instance) Cgroup() string {
	if i.prep.group == nil {
		return ""
	}
	return i.prep.group.Path
}

// Upper is the folder on the host that holds what the agent changed. Its
// content is hostile: links, setuid bits and overlay marks of the agent's
// making. It stays after Close.
func (i *Instance) Upper() string { return filepath.Join(i.spec.RunDir, "upper") }

// Lost is closed when the hand is gone, by whatever cause.
func (i *Instance) Lost() <-chan struct{} { return i.client.Gone() }

// Usage is what the whole sandbox has used; nil is unknown.
type Usage struct {
	CPU        *uint64 `json:"cpu_nanoseconds"`
	PeakMemory *uint64 `json:"peak_memory_bytes"`
}

// Usage reads the kernel's counters of the control group.
func (i *Instance) Usage() Usage {
	if i.prep.group == nil {
		return Usage{}
	}
	u := i.prep.group.Usage()
	return Usage{CPU: u.CPU, PeakMemory: u.PeakMemory}
}

// Kill kills everything inside, the hand too, and waits until it is gone.
// Running calls return ErrHandLost.
func (i *Instance) Kill(ctx context.Context) error {
	i.client.Lose(errors.New("killed"))
	var err error
	if i.prep.group != nil {
		err = i.prep.group.Kill(ctx)
	}
	return errors.Join(err, i.prep.hand.end())
}

// Close kills everything inside, waits, and frees all that the sandbox had
// on the host: mounts, control group, uid range, locks. The upper stays.
func (i *Instance) Close() error {
	i.once.Do(func() {
		i.client.Close()
		i.close = i.prep.cleanup()
	})
	return i.close
}
