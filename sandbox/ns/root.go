package ns

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"cairn/sandbox/layer"
)

func privateMounts(*Plan) error {
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// openSources turns every path of the plan into a detached tree, before the
// new root hides the host's folders.
func openSources(p *Plan) error {
	open := func(s *Source, a layer.Attr) error {
		if s.FD >= 0 {
			return nil
		}
		a.Inside = true
		f, err := layer.Tree(s.Path, a)
		if err != nil {
			return err
		}
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		f.Close()
		s.FD = int64(fd)
		return err
	}
	ro := layer.Attr{ReadOnly: true, Recursive: true}
	if !p.made() {
		if err := open(&p.System, ro); err != nil {
			return err
		}
		for i := range p.Mounts {
			if err := open(&p.Mounts[i].Source, ro); err != nil {
				return err
			}
		}
	}
	for i := range p.Lowers {
		if err := open(&p.Lowers[i], layer.Attr{ReadOnly: true}); err != nil {
			return err
		}
	}
	if err := open(&p.Run, layer.Attr{}); err != nil {
		return err
	}
	for _, s := range []*Source{&p.Upper, &p.Work} {
		if s.FD < 0 {
			fd, err := unix.Openat(int(p.Run.FD), s.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("open %s: %w", s.Path, err)
			}
			s.FD = int64(fd)
		}
	}
	return nil
}

// newRoot puts the read-only part in place: the worker's, or one made here.
func newRoot(p *Plan) error {
	if p.made() {
		return layer.Attach(int(p.Root.FD), stage)
	}
	return Skeleton(p, stage)
}

// Skeleton makes everything of the root that is the same for each sandbox and
// that nobody inside may write: the system, /etc, the devices, the declared
// mounts, and the folders on which the sandbox's own file systems will lie. It
// must be sealed when the last mount point is there.
func Skeleton(p *Plan, at string) error {
	for _, step := range []func(*Plan, string) error{mountRoot, mountSystem, writeEtc, trustAuthority, mountDevices, mountDeclared} {
		if err := step(p, at); err != nil {
			return err
		}
	}
	return nil
}

// mountRoot mounts an empty tmpfs and makes the folders of a system on it.
func mountRoot(_ *Plan, stage string) error {
	if err := tmpfs(stage, rootOptions, unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	for _, d := range []string{"/usr", "/etc", "/dev", "/proc", "/tmp", "/home", homeDir, workspace, "/opt", "/var/cache", "/var/lib", "/var/log", "/run"} {
		if err := os.MkdirAll(stage+d, 0o755); err != nil {
			return err
		}
	}
	// What the worker's canary tries to read: only Landlock refuses it.
	if err := os.WriteFile(stage+LandlockProbe, []byte(LandlockMark), 0o444); err != nil {
		return err
	}
	return os.Symlink("/tmp", stage+"/var/tmp")
}

// mountSystem shows the host's /usr, with its /usr/local covered by an empty
// folder, and the top-level names the host itself has for its parts.
func mountSystem(p *Plan, stage string) error {
	if err := layer.Attach(int(p.System.FD), stage+"/usr"); err != nil {
		return err
	}
	if _, err := os.Stat(stage + "/usr/local"); err == nil {
		if err := tmpfs(stage+"/usr/local", rootOptions, unix.MS_NOSUID|unix.MS_NODEV); err != nil {
			return err
		}
	}
	for _, name := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		to, err := os.Readlink(name)
		if err != nil {
			continue // not a link on this host: nothing of /usr has that name
		}
		if err := os.Symlink(to, stage+name); err != nil {
			return err
		}
	}
	return nil
}

// mountOwn mounts what is this sandbox's own and in memory.
func mountOwn(p *Plan) error {
	own := fmt.Sprintf(",uid=%d,gid=%d", p.Agent, p.Agent)
	if err := mountTerminals(p); err != nil {
		return err
	}
	if err := tmpfs(stage+"/tmp", "mode=1777"+size(p.TmpSize), unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	return tmpfs(stage+homeDir, "mode=0700"+own+size(p.HomeSize), unix.MS_NOSUID|unix.MS_NODEV)
}

// mountProc must run while the host's /proc is still mounted: the kernel
// allows a new one only beside one that hides nothing.
func mountProc(*Plan) error {
	err := unix.Mount("proc", stage+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err != nil {
		return fmt.Errorf("mount /proc (a container that masks files in /proc forbids it): %w", err)
	}
	return nil
}

// mountWorkspace puts the overlay on /workspace. What it is made of is attached
// below a file system that goes again as a whole: the overlay holds copies of
// its own, and by a name the agent could reach the upper behind its back.
func mountWorkspace(p *Plan) error {
	const scratch = stage + "/tmp"
	if err := tmpfs(scratch, "mode=0700,size=1m", unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	// Overlay needs at least one lower: without any, an empty folder is it.
	lowers := make([]string, max(1, len(p.Lowers)))
	for i := range lowers {
		lowers[i] = scratch + "/" + strconv.Itoa(i)
	}
	for _, dir := range append(lowers, scratch+runStage) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := layer.Attach(int(p.Run.FD), scratch+runStage); err != nil {
		return err
	}
	for i, l := range p.Lowers {
		if err := layer.Attach(int(l.FD), lowers[i]); err != nil {
			return err
		}
	}
	upper, work := fmt.Sprintf("/proc/self/fd/%d", p.Upper.FD), fmt.Sprintf("/proc/self/fd/%d", p.Work.FD)
	if err := layer.Overlay(lowers, upper, work, stage+workspace); err != nil {
		return err
	}
	return unix.Unmount(scratch, unix.MNT_DETACH)
}

// mountDeclared attaches the operator's mounts. Targets were checked by the
// worker; MkdirAll works only on the tmpfs parts of the new root.
func mountDeclared(p *Plan, stage string) error {
	for _, b := range p.Mounts {
		if !Late(b.Target) {
			if err := mountOne(b, stage); err != nil {
				return err
			}
		}
	}
	return nil
}

// Late tells whether a target lies in what is the sandbox's own, so that it
// cannot be part of a root that is made before.
func Late(target string) bool {
	return strings.HasPrefix(target, homeDir+"/") || strings.HasPrefix(target, "/tmp/")
}

func mountLate(p *Plan) error {
	for _, b := range p.Mounts {
		if Late(b.Target) {
			if err := mountOne(b, stage); err != nil {
				return err
			}
		}
	}
	return nil
}

func mountOne(b Bind, stage string) error {
	at := stage + b.Target
	if err := mountPoint(int(b.Source.FD), at); err != nil {
		return fmt.Errorf("mount point %s: %w", b.Target, err)
	}
	return layer.Attach(int(b.Source.FD), at)
}

func mountPoint(tree int, at string) error {
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// pivot makes the new root the only one. Old and new root share one mount
// point, so that the old one needs no folder of its own.
func pivot(*Plan) error {
	if err := unix.Chdir(stage); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the host's root: %w", err)
	}
	return unix.Chdir("/")
}

// changeRoot is what pivot must not be mistaken for: the host's root stays
// behind it.
func changeRoot(*Plan) error {
	if err := unix.Chroot(stage); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// sealOwnRoot seals a root that was made here.
func sealOwnRoot(p *Plan) error {
	if p.made() {
		return nil
	}
	return Seal(stage)
}

// Seal makes every tmpfs that is not meant for the agent read-only.
func Seal(root string) error {
	ro := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	for _, at := range []string{"/usr/local", "/dev", "/"} {
		err := unix.MountSetattr(unix.AT_FDCWD, root+at, 0, &ro)
		if err != nil && !(at == "/usr/local" && (err == unix.EINVAL || err == unix.ENOENT)) {
			return fmt.Errorf("make %s read-only: %w", at, err)
		}
	}
	return nil
}

func closeTrees(p *Plan) error {
	fds := []int64{p.Root.FD, p.System.FD, p.Run.FD, p.Upper.FD, p.Work.FD}
	for _, l := range p.Lowers {
		fds = append(fds, l.FD)
	}
	for _, b := range p.Mounts {
		fds = append(fds, b.Source.FD)
	}
	for _, fd := range fds {
		if fd < 0 {
			continue // in the worker's root
		}
		if err := unix.Close(int(fd)); err != nil {
			return fmt.Errorf("close tree %d: %w", fd, err)
		}
	}
	return nil
}

func tmpfs(at, options string, flags uintptr) error {
	if err := unix.Mount("tmpfs", at, "tmpfs", flags, options); err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", at, err)
	}
	return nil
}

func size(bytes uint64) string { return ",size=" + strconv.FormatUint(bytes, 10) }
