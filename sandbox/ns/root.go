package ns

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

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
	if err := open(&p.System, ro); err != nil {
		return err
	}
	for i := range p.Mounts {
		if err := open(&p.Mounts[i].Source, ro); err != nil {
			return err
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

// newRoot mounts an empty tmpfs and makes the skeleton of a system on it.
func newRoot(*Plan) error {
	if err := tmpfs(stage, rootOptions, unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	for _, d := range []string{"/usr", "/etc", "/dev", "/proc", "/tmp", "/home", homeDir, workspace, "/opt", "/var/cache", "/var/lib", "/var/log", "/run", lowerStage, runStage} {
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
func mountSystem(p *Plan) error {
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
	own := fmt.Sprintf(",uid=%d,gid=%d", p.Agent, p.Agent)
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

func mountWorkspace(p *Plan) error {
	if err := layer.Attach(int(p.Run.FD), stage+runStage); err != nil {
		return err
	}
	// Overlay needs at least one lower: without any, an empty file system is
	// it. A plain folder would not do, it is removed from under the overlay.
	lowers := make([]string, max(1, len(p.Lowers)))
	for i := range lowers {
		lowers[i] = stage + lowerStage + "/" + strconv.Itoa(i)
		if err := os.Mkdir(lowers[i], 0o755); err != nil {
			return err
		}
	}
	if len(p.Lowers) == 0 {
		if err := tmpfs(lowers[0], "mode=0755,size=4k,nr_inodes=2", unix.MS_RDONLY); err != nil {
			return err
		}
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
	// The overlay holds its own copies; by these names the agent could reach
	// the upper behind the overlay's back.
	for _, l := range lowers {
		if err := unix.Unmount(l, unix.MNT_DETACH); err != nil {
			return err
		}
	}
	return unix.Unmount(stage+runStage, unix.MNT_DETACH)
}

// mountDeclared attaches the operator's mounts. Targets were checked by the
// worker; MkdirAll works only on the tmpfs parts of the new root.
func mountDeclared(p *Plan) error {
	for _, b := range p.Mounts {
		at := stage + b.Target
		if err := mountPoint(int(b.Source.FD), at); err != nil {
			return fmt.Errorf("mount point %s: %w", b.Target, err)
		}
		if err := layer.Attach(int(b.Source.FD), at); err != nil {
			return err
		}
	}
	return nil
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

// sealRoot makes every tmpfs that is not meant for the agent read-only.
func sealRoot(p *Plan) error {
	if err := os.RemoveAll(lowerStage); err != nil {
		return err
	}
	if err := os.Remove(runStage); err != nil {
		return err
	}
	ro := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	for _, at := range []string{"/usr/local", "/dev", "/"} {
		err := unix.MountSetattr(unix.AT_FDCWD, at, 0, &ro)
		if err != nil && !(at == "/usr/local" && (err == unix.EINVAL || err == unix.ENOENT)) {
			return fmt.Errorf("make %s read-only: %w", at, err)
		}
	}
	return closeTrees(p)
}

func closeTrees(p *Plan) error {
	fds := []int64{p.System.FD, p.Run.FD, p.Upper.FD, p.Work.FD}
	for _, l := range p.Lowers {
		fds = append(fds, l.FD)
	}
	for _, b := range p.Mounts {
		fds = append(fds, b.Source.FD)
	}
	for _, fd := range fds {
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
