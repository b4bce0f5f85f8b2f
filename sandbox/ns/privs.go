package ns

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noNestedUserNS sets this user namespace's own bound: programs inside cannot
// make another, in which they would have capabilities again.
func noNestedUserNS(*Plan) error {
	return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
}

func setLimits(p *Plan) error {
	if err := ordinaryVictim(); err != nil {
		return err
	}
	limits := []struct {
		what  int
		value uint64
	}{
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_FSIZE, p.FileSize},
		{unix.RLIMIT_NOFILE, p.Files},
		{unix.RLIMIT_NPROC, p.Procs},
	}
	for _, l := range limits {
		if l.what == unix.RLIMIT_NPROC && l.value == 0 {
			continue // the pids cgroup bounds them
		}
		// syscall, not unix.Prlimit: the runtime would give programs the old limit back.
		r := syscall.Rlimit{Cur: l.value, Max: l.value}
		if err := syscall.Setrlimit(l.what, &r); err != nil {
			return fmt.Errorf("rlimit %d to %d: %w", l.what, l.value, err)
		}
	}
	return nil
}

// ordinaryVictim takes back the protection from the kernel's memory killer
// that a worker may have and its children inherit.
func ordinaryVictim() error {
	const name = "/proc/self/oom_score_adj"
	b, err := os.ReadFile(name)
	if err != nil || !strings.HasPrefix(string(b), "-") {
		return err
	}
	return os.WriteFile(name, []byte("0"), 0)
}

// newKeyring leaves the worker's session keyring, whose keys every process
// that inherits it may read.
func newKeyring(*Plan) error {
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0) // 0: a new one without a name
	if err == nil || err == unix.ENOSYS {                                  // a kernel without keyrings
		return nil
	}
	return fmt.Errorf("session keyring: %w", err)
}

// joinPayload moves the calling thread, and with it every program it will
// fork, into the payload's cgroups: a bomb there leaves the hand its reserve.
// In cgroup v2 threads cannot move alone; the fork names the group instead.
func joinPayload(p *Plan) error {
	for _, fd := range p.Tasks {
		if _, err := unix.Write(int(fd), []byte("0")); err != nil {
			return fmt.Errorf("join the payload's cgroup: %w", err)
		}
		if err := unix.Close(int(fd)); err != nil {
			return err
		}
	}
	return nil
}

// ownCgroups hides the host's group names from the calling thread and what it
// forks: the group that it is in now is the root of what they see.
func ownCgroups(*Plan) error {
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("cgroup namespace: %w", err)
	}
	return nil
}

// dropBounding empties the calling thread's bounding set. Only the thread
// that forks needs it: the others never run a program.
func dropBounding(*Plan) error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL && c > 0 {
			return nil // above the last capability of this kernel
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
}

// becomeAgent gives up root and every capability, on all threads. Each call
// that reaches all of them stops all of them, so that there are as few as can
// be: with a range, the worker has set the groups already, and leaving uid 0
// takes every capability along (capabilities(7)); that it did is read back.
func becomeAgent(p *Plan) error {
	if !p.Range {
		return dropOwnCaps()
	}
	id := int(p.Agent)
	if gid, groups := syscall.Getgid(), must(syscall.Getgroups()); gid != id || len(groups) != 0 {
		return fmt.Errorf("runs with gid %d and groups %v, expected %d and none", gid, groups, id)
	}
	if err := syscall.Setresuid(id, id, id); err != nil {
		return fmt.Errorf("setresuid %d: %w", id, err)
	}
	return noCapsLeft()
}

// must turns what cannot fail into nothing found.
func must(groups []int, err error) []int {
	if err != nil {
		return []int{-1}
	}
	return groups
}

// noCapsLeft reads what the kernel says of every thread.
func noCapsLeft() error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		b, err := os.ReadFile("/proc/self/task/" + t.Name() + "/status")
		if os.IsNotExist(err) {
			continue // a thread that has ended
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			for _, set := range []string{"CapPrm:", "CapEff:", "CapAmb:"} {
				if v, ok := strings.CutPrefix(line, set); ok && strings.Trim(v, "0\t\n ") != "" {
					return fmt.Errorf("thread %s still has %s", t.Name(), strings.TrimSpace(line))
				}
			}
		}
	}
	return nil
}

// dropOwnCaps gives up those of the user namespace, whose id is not root.
func dropOwnCaps() error {
	if _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("clear ambient capabilities: %w", e)
	}
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&h)), uintptr(unsafe.Pointer(&none[0])), 0)
	if e != 0 {
		return fmt.Errorf("capset: %w", e)
	}
	return nil
}

// checkNoNewPrivs sees that every program will be without new privileges: the
// worker's thread that made this process had it set, and no thread can be
// without what the first one had.
func checkNoNewPrivs(*Plan) error {
	n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err == nil && n != 1 {
		err = errors.New("no_new_privs is not set")
	}
	return err
}

// dieWithParent repeats what the worker asked for at the clone: a change of
// uid clears it.
func dieWithParent(*Plan) error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// notDumpable hides the hand's memory and descriptors from programs of the
// same uid; their own exec makes them dumpable again.
func notDumpable(*Plan) error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// CloseOthers closes every descriptor above keep that is not the runtime's
// own, and marks the rest so that no program inherits one.
func CloseOthers(keep map[int]bool) error {
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, n := range names {
		var fd int
		if _, err := fmt.Sscan(n, &fd); err != nil {
			return err
		}
		to, _ := os.Readlink("/proc/self/fd/" + n)
		if fd < 3 || keep[fd] || fd == int(d.Fd()) || strings.HasPrefix(to, "anon_inode:[event") {
			continue
		}
		if err := unix.Close(fd); err != nil {
			return err
		}
	}
	return nil
}

// Kept lists the descriptors that a plan uses.
func (p *Plan) Kept(socket int) map[int]bool {
	keep := map[int]bool{socket: true, int(p.Cgroup): true}
	if len(p.Ports) > 0 {
		keep[int(p.Passage)] = true
	}
	for _, s := range append([]Source{p.Root, p.System, p.Run, p.Upper, p.Work}, p.Lowers...) {
		keep[int(s.FD)] = true
	}
	for _, b := range p.Mounts {
		keep[int(b.Source.FD)] = true
	}
	for _, fd := range p.Tasks {
		keep[int(fd)] = true
	}
	return keep
}
