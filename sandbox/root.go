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
	roots  map[string]string // where each root is mounted, in the keeper's namespace
	keeper chan<- func()     // runs functions on a thread in a mount namespace of its own
	maps   map[string]*os.File
}

// mostKept bounds each kind. When it is full all are dropped: who uses more at
// once gains little from keeping.
const mostKept = 64

func (k *kept) close() {
	for _, f := range k.maps {
		f.Close()
	}
	if k.keeper != nil {
		close(k.keeper) // its thread ends, and with it the namespace and all mounts there
	}
	*k = kept{}
}

// inNamespace runs f on the keeper's thread.
func (k *kept) inNamespace(f func() error) error {
	if k.keeper == nil {
		jobs, ready := make(chan func()), make(chan error, 1)
		go func() {
			// Not the first thread, which /proc/self shows: see onLostThread.
			ready <- onLostThread(func() error {
				if err := ownMounts(); err != nil {
					return err
				}
				ready <- nil
				for job := range jobs {
					job()
				}
				return nil
			})
		}()
		if err := <-ready; err != nil {
			return err
		}
		k.keeper = jobs
	}
	done := make(chan error, 1)
	k.keeper <- func() { done <- f() }
	return <-done
}

// rootStage is where roots are mounted, each in a folder of its own.
const rootStage = "/tmp"

func ownMounts() error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	syscall.Umask(0o022) // of this thread alone; the worker's own would close the root to the agent
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("tmpfs", rootStage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0700,size=1m")
}

// root gives a copy of the read-only root for these mounts.
func (p *preparation) root() (copied *os.File, err error) {
	key, err := p.rootKey()
	if err != nil {
		return nil, err
	}
	n := p.native
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kept.roots[key] == "" && len(n.kept.roots) >= mostKept {
		n.kept.close()
	}
	if n.kept.roots[key] == "" {
		if err := p.openSources(); err != nil {
			return nil, err
		}
	}
	err = n.kept.inNamespace(func() error {
		at := n.kept.roots[key]
		if at == "" {
			at = fmt.Sprintf("%s/%d", rootStage, len(n.kept.roots))
			if err := p.makeRoot(at); err != nil {
				_ = unix.Unmount(at, unix.MNT_DETACH)
				return errors.Join(err, os.Remove(at))
			}
			if n.kept.roots == nil {
				n.kept.roots = map[string]string{}
			}
			n.kept.roots[key] = at
		}
		fd, err := unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return fmt.Errorf("copy the root: %w", err)
		}
		copied = os.NewFile(uintptr(fd), "root")
		return nil
	})
	return copied, err
}

// rootKey names a root by everything that its content depends on: a source
// that was replaced, or a cache of the linker that was written again, makes
// another one.
func (p *preparation) rootKey() (string, error) {
	var b strings.Builder
	fmt.Fprint(&b, p.native.omits(ReadonlySystem), p.plan.Agent, p.plan.Hostname, p.plan.Authority)
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

// openSources copies what a root shows: the host's system first, then the
// declared mounts.
func (p *preparation) openSources() error {
	sources := []string{"/usr"}
	for _, m := range p.spec.Mounts {
		sources = append(sources, m.Source)
	}
	for _, path := range sources {
		f, err := layer.Tree(path, p.readOnly())
		if err != nil {
			return err
		}
		p.temp = append(p.temp, f)
		p.opened = append(p.opened, f)
	}
	return nil
}

// makeRoot builds a root with the code that an unprivileged hand uses, on the
// keeper's thread. The sources were opened in the worker's own namespace: the
// keeper's is of the time when it began, and covers /tmp.
func (p *preparation) makeRoot(at string) error {
	plan := p.plan
	plan.System = ns.Source{FD: int64(p.opened[0].Fd())}
	for i, m := range p.spec.Mounts {
		plan.Mounts = append(plan.Mounts, ns.Bind{Source: ns.Source{FD: int64(p.opened[i+1].Fd())}, Target: m.Target})
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := ns.Skeleton(&plan, at); err != nil {
		return err
	}
	return ns.Seal(at)
}

// idMap gives a user namespace for a map, as a descriptor of the caller's own.
func (p *preparation) idMap(uids, gids []syscall.SysProcIDMap) (*os.File, error) {
	key := fmt.Sprint(uids, gids)
	n := p.native
	n.mu.Lock()
	defer n.mu.Unlock()
	if f := n.kept.maps[key]; f != nil {
		return p.own(f)
	}
	f, err := layer.UserNS(p.exe, uids, gids)
	if err != nil {
		return nil, err
	}
	if len(n.kept.maps) >= mostKept {
		n.kept.close()
	}
	if n.kept.maps == nil {
		n.kept.maps = map[string]*os.File{}
	}
	n.kept.maps[key] = f
	return p.own(f)
}

// own gives another descriptor of what is kept, since another preparation may
// drop that one meanwhile.
func (p *preparation) own(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	mine := os.NewFile(uintptr(fd), f.Name())
	p.temp = append(p.temp, mine)
	return mine, nil
}
