package change

import (
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// openTop opens the folder that a layer is. It is a path of ours.
func openTop(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// beneath opens one name, or a path, in a folder: never through a link, never out of it, never across a mount.
func beneath(dir *os.File, name string, flags int) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	for {
		fd, err := unix.Openat2(int(dir.Fd()), name, &how)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "openat2", Path: name, Err: err}
		}
		return os.NewFile(uintptr(fd), name), nil
	}
}

// openFolder opens a folder in a folder.
func openFolder(dir *os.File, name string) (*os.File, error) {
	return beneath(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// openRegular opens a regular file to read; what is another kind by now is refused, and nothing blocks.
func openRegular(dir *os.File, name string) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	f, err := beneath(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, st, err
	}
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Close()
		return nil, st, &os.PathError{Op: "read", Path: path.Base(name), Err: errors.Join(err, unix.EINVAL)}
	}
	return f, st, nil
}

// stat looks at a name without following it.
func stat(dir *os.File, name string) (unix.Stat_t, bool, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return st, false, nil
	}
	return st, err == nil, err
}

func isWhiteout(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 }

func isFolder(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFDIR }

// isOpaque reports whether the folder hides what lies beneath it.
func isOpaque(dir *os.File) bool {
	var value [8]byte
	n, err := unix.Fgetxattr(int(dir.Fd()), "user.overlay.opaque", value[:])
	return err == nil && n == 1 && value[0] == 'y'
}

// readlink reads where a link leads, as text.
func readlink(dir *os.File, name string) (string, error) {
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(dir.Fd()), name, target)
	if err != nil {
		return "", err
	}
	return string(target[:n]), nil
}
