package layer

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// RangeSize is the number of ids in one slot.
const RangeSize = 65536

// UpperMap maps the ids under which uppers are stored to those of a slot, so
// that a workspace survives a change of slot and never belongs to an id that
// a process has.
func UpperMap(store, base int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: store, HostID: base, Size: RangeSize}}
}

// LowerMap maps the ids on disk to those of the slot that begins at base: the
// owner becomes agent; the owner whose number is agent takes the other's
// place; everyone else keeps the number. Owners outside the range are not
// mapped and appear as nobody.
func LowerMap(owner, agent, base int) []syscall.SysProcIDMap {
	one := func(disk, inside int) syscall.SysProcIDMap {
		return syscall.SysProcIDMap{ContainerID: disk, HostID: base + inside, Size: 1}
	}
	run := func(from, to int) (m []syscall.SysProcIDMap) {
		if to > from {
			m = append(m, syscall.SysProcIDMap{ContainerID: from, HostID: base + from, Size: to - from})
		}
		return m
	}
	if owner == agent {
		return run(0, RangeSize)
	}
	if owner >= RangeSize {
		m := append(run(0, agent), run(agent+1, RangeSize)...)
		return append(m, one(owner, agent))
	}
	a, b := min(owner, agent), max(owner, agent)
	m := append(run(0, a), one(a, b))
	m = append(m, run(a+1, b)...)
	m = append(m, one(b, a))
	return append(m, run(b+1, RangeSize)...)
}

// UserNS makes a user namespace that only carries maps. It needs a process
// for a moment: a traced child that the kernel stops at the end of its exec,
// so that not one instruction of it runs. exe is any executable.
func UserNS(exe string, uids, gids []syscall.SysProcIDMap) (*os.File, error) {
	// The tracer is a thread: it must not change until the child is gone.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := os.StartProcess(exe, []string{"idmap"}, &os.ProcAttr{
		Env: []string{},
		Sys: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER, Ptrace: true, Pdeathsig: syscall.SIGKILL,
			UidMappings: uids, GidMappings: gids,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("user namespace for an id map: %w", err)
	}
	defer func() {
		_ = p.Kill()
		_, _ = p.Wait()
	}()
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", p.Pid))
	if err != nil {
		return nil, fmt.Errorf("user namespace for an id map: %w", err)
	}
	return f, nil
}
