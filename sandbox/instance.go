package sandbox

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"cairn/sandbox/hand"
)

// Instance is a live sandbox. Its methods are safe for concurrent use.
type Instance struct {
	spec   Spec
	prep   *preparation
	client *hand.Client
	dog    *watchdog
	since  time.Time

	counters sync.Mutex // over reading the kernel's counters and remembering them
	counted  [2]uint64  // kills for memory and refused forks that were told already

	once  sync.Once
	close error
}

func newInstance(p *preparation) *Instance {
	i := &Instance{spec: p.spec, prep: p, client: p.hand.client, since: time.Now()}
	i.dog = i.watch(!p.native.omits(DiskWatchdog))
	return i
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

// Freeze stops everything inside, the hand too, where it is; Thaw lets it go
// on. Both need cgroup_kill.
func (i *Instance) Freeze(ctx context.Context) error {
	if i.prep.group == nil {
		return errNoGroup
	}
	return i.prep.group.Freeze(ctx)
}

// Thaw undoes Freeze.
func (i *Instance) Thaw() error {
	if i.prep.group == nil {
		return errNoGroup
	}
	return i.prep.group.Thaw()
}

var errNoGroup = errors.New("this sandbox has no control group")

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
		i.dog.stop()
		<-i.dog.done
		i.client.Close()
		i.close = i.prep.cleanup()
	})
	return i.close
}
