// Package layer makes the file trees of a sandbox: detached read-only copies
// of host mounts, id-mapped where the owner on disk must appear as another
// owner inside, and the overlay that is the workspace. It imports the
// standard library and golang.org/x/sys.
//
// Trees are made by the worker, in the initial namespaces, and handed to the
// sandbox as descriptors; the sandbox then needs no permission on the host's
// path. Worker without privilege: the sandbox opens the paths itself.
//
//	host folder --Tree--> detached mount (fd) --attach--> overlay lower / bind
//	upper, work (RunDir) --------------------------------> overlay upper
package layer

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attr says how a tree appears.
type Attr struct {
	ReadOnly  bool
	Recursive bool     // with the mounts below it
	Inside    bool     // called in the sandbox's namespaces, where access times are locked
	Device    bool     // one device file of the host, which must stay usable
	UserNS    *os.File // id map, nil for none
}

// Tree copies the mount at path into a detached tree, always without setuid
// files and, but for Device, without devices. The caller closes it; closing
// releases the mount.
func Tree(path string, a Attr) (*os.File, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if a.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, flags)
	if err != nil {
		return nil, fmt.Errorf("copy mount tree of %s: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	if err := set(fd, a); err != nil {
		f.Close()
		return nil, fmt.Errorf("mount attributes of %s: %w", path, err)
	}
	return f, nil
}

func set(fd int, a Attr) error {
	m := unix.MountAttr{
		Attr_set:    unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
		Propagation: unix.MS_PRIVATE,
	}
	if a.Device {
		m.Attr_set = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	}
	if a.ReadOnly {
		m.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if a.ReadOnly && !a.Inside {
		// Without noatime a read of the sandbox would write the host's inode.
		m.Attr_set |= unix.MOUNT_ATTR_NOATIME
		m.Attr_clr |= unix.MOUNT_ATTR__ATIME
	}
	flags := uint(unix.AT_EMPTY_PATH)
	if a.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	if err := unix.MountSetattr(fd, "", flags, &m); err != nil {
		return err
	}
	if a.UserNS == nil {
		return nil
	}
	return MapIDs(fd, a.UserNS)
}

// MapIDs gives a detached tree an id map. Descriptors opened in the tree
// before see the map too: a folder whose owner the map lacks can be passed
// only before.
func MapIDs(fd int, userNS *os.File) error {
	id := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(userNS.Fd())}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &id); err != nil {
		return fmt.Errorf("id map (the file system must support id-mapped mounts): %w", err)
	}
	return nil
}

// Attach puts a detached tree onto target, in the caller's mount namespace.
func Attach(fd int, target string) error {
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach tree to %s: %w", target, err)
	}
	return nil
}

// Owner gives uid and gid of a folder on disk.
func Owner(path string) (uid, gid int, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	if !st.IsDir() {
		return 0, 0, fmt.Errorf("%s: %w", path, syscall.ENOTDIR)
	}
	sys := st.Sys().(*syscall.Stat_t)
	return int(sys.Uid), int(sys.Gid), nil
}
