package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cairn/sandbox/layer"
	"cairn/sandbox/ns"
)

// kept is what a backend keeps from one sandbox to the next, because making it
// takes longer than all the rest: the read-only part of the root, and user
// namespaces that only carry id maps. Nothing of it can be changed from inside.
type kept struct {
	roots map[string]*os.File
	maps  map[string]*os.File
	plain bool // this kernel cannot copy a detached tree: the hand makes the root
}

// mostKept bounds each kind. When it is full all are dropped: who uses more at
// once gains little from keeping.
const mostKept = 64

func keep(m map[string]*os.File, key string, f *os.File) map[string]*os.File {
	if len(m) >= mostKept {
		closeKept(m)
		m = nil
	}
	if m == nil {
		m = map[string]*os.File{}
	}
	m[key] = f
	return m
}

func closeKept(m map[string]*os.File) {
	for _, f := range m {
		f.Close()
	}
}

// root gives a copy of the read-only root for these mounts, or nothing when
// the kernel cannot copy one (before Linux 6.15).
func (p *preparation) root() (*os.File, error) {
	key, err := p.rootKey()
	if err != nil {
		return nil, err
	}
	n := p.native
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kept.plain {
		return nil, nil
	}
	whole := n.kept.roots[key]
	if whole == nil {
		if whole, err = p.makeRoot(); err != nil {
			return nil, err
		}
		n.kept.roots = keep(n.kept.roots, key, whole)
	}
	fd, err := unix.OpenTree(int(whole.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if errors.Is(err, unix.EINVAL) {
		n.kept.plain = true
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("copy the root: %w", err)
	}
	return os.NewFile(uintptr(fd), "root"), nil
}

// rootKey names a root by everything that its content depends on: a source
// that was replaced, or a cache of the linker that was written again, makes
// another one.
func (p *preparation) rootKey() (string, error) {
	var b strings.Builder
	fmt.Fprint(&b, p.native.omits(ReadonlySystem), p.plan.Agent, p.plan.Hostname)
	for _, name := range []string{"/usr", "/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"} {
		var st unix.Stat_t
		if unix.Stat(name, &st) == nil {
			fmt.Fprint(&b, "\n", st.Dev, st.Ino)
			if name != "/usr" { // which is shown, not copied
				fmt.Fprint(&b, " ", st.Mtim, st.Ctim)
			}
		}
	}
	for _, m := range p.spec.Mounts {
		var st unix.Stat_t
		if err := unix.Stat(m.Source, &st); err != nil {
			return "", refuseBy(ReadonlySystem, &os.PathError{Op: "mount", Path: m.Source, Err: err})
		}
		if ns.Late(m.Target) {
			continue
		}
		fmt.Fprintf(&b, "\n%d %d %q %q", st.Dev, st.Ino, m.Source, m.Target)
	}
	return b.String(), nil
}

// rootStage is where a root is built, in a mount namespace that goes again.
const rootStage = "/tmp"

// makeRoot builds the root with the code that the hand uses, on a thread in a
// mount namespace of its own, and takes it out of there as one detached tree.
func (p *preparation) makeRoot() (whole *os.File, err error) {
	plan := p.plan
	ro := p.readOnly()
	system, err := layer.Tree("/usr", ro)
	if err != nil {
		return nil, err
	}
	defer system.Close()
	plan.System = ns.Source{FD: int64(system.Fd())}
	for _, m := range p.spec.Mounts {
		if ns.Late(m.Target) {
			continue
		}
		f, err := layer.Tree(m.Source, ro)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		plan.Mounts = append(plan.Mounts, ns.Bind{Source: ns.Source{FD: int64(f.Fd())}, Target: m.Target})
	}
	err = onLostThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("mount namespace: %w", err)
		}
		syscall.Umask(0o022) // of this thread alone; the worker's own would close the root to the agent
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := errors.Join(ns.Skeleton(&plan, rootStage), ns.Seal(rootStage)); err != nil {
			return err
		}
		fd, err := unix.OpenTree(unix.AT_FDCWD, rootStage, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return fmt.Errorf("copy the root: %w", err)
		}
		whole = os.NewFile(uintptr(fd), "root")
		return nil
	})
	return whole, err
}

// idMap gives a user namespace for a map.
func (p *preparation) idMap(uids, gids []syscall.SysProcIDMap) (*os.File, error) {
	key := fmt.Sprint(uids, gids)
	n := p.native
	n.mu.Lock()
	defer n.mu.Unlock()
	if f := n.kept.maps[key]; f != nil {
		return f, nil
	}
	f, err := layer.UserNS(p.exe, uids, gids)
	if err == nil {
		n.kept.maps = keep(n.kept.maps, key, f)
	}
	return f, err
}
