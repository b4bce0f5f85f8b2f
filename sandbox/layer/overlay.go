package layer

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Overlay mounts a writable view onto target: lowers (paths, first is
// topmost) below upper. Called inside the sandbox's user namespace, hence
// userxattr: overlay marks live in user.overlay.*, which the agent can write
// too, so an upper is hostile data for whoever reads it later.
//
// The volatile option is not used: its mark refuses the mount after a crash,
// and a dead worker's workspace must be attached again.
// Options: Documentation/filesystems/overlayfs.rst of the Linux kernel.
func Overlay(lowers []string, upper, work, target string) error {
	fd, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open overlay: %w", err)
	}
	defer unix.Close(fd)
	if err := setLowers(fd, lowers); err != nil {
		return err
	}
	options := [][2]string{{"upperdir", upper}, {"workdir", work}, {"source", "workspace"}}
	for _, o := range options {
		if err := unix.FsconfigSetString(fd, o[0], o[1]); err != nil {
			return fmt.Errorf("overlay %s: %w", o[0], err)
		}
	}
	if err := unix.FsconfigSetFlag(fd, "userxattr"); err != nil {
		return fmt.Errorf("overlay userxattr: %w", err)
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return fmt.Errorf("create overlay%s: %w", kernelSays(fd), err)
	}
	m, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	defer unix.Close(m)
	return Attach(m, target)
}

// setLowers names each lower alone, so that their number has no limit; kernels
// before 6.7 know only the joined list (at most 256 bytes here).
func setLowers(fd int, lowers []string) error {
	for i, l := range lowers {
		err := unix.FsconfigSetString(fd, "lowerdir+", l)
		if err == unix.EINVAL && i == 0 {
			err = unix.FsconfigSetString(fd, "lowerdir", strings.Join(lowers, ":"))
			if err == nil {
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("overlay lower %s%s: %w", l, kernelSays(fd), err)
		}
	}
	return nil
}

// kernelSays reads the message that the new mount interface leaves in the
// context's descriptor.
func kernelSays(fd int) string {
	var b [512]byte
	n, err := unix.Read(fd, b[:])
	if err != nil || n <= 0 {
		return ""
	}
	return " (" + string(b[:n]) + ")"
}
