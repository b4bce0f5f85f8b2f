package layer

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MaxDepth bounds a walk, which holds one descriptor for each level: an upper
// is made by the agent, and a tree can be deeper than any path is long.
const MaxDepth = 256

// ErrTooDeep means that a tree has more levels than any honest one.
var ErrTooDeep = fmt.Errorf("folders are nested deeper than %d levels", MaxDepth)

// Size is what a tree takes of its volume.
type Size struct {
	Bytes  uint64 // blocks in use, so that holes do not count
	Inodes uint64 // files and folders, the root not among them
}

// Measure adds up a hostile tree that may change meanwhile: nothing is opened
// but folders, never through a link, and a file with several names counts once.
func Measure(ctx context.Context, root string) (Size, error) {
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Size{}, &os.PathError{Op: "open", Path: root, Err: err}
	}
	m := measurement{ctx: ctx, seen: map[uint64]bool{}}
	err = m.folder(fd, 0)
	return m.size, err
}

type measurement struct {
	ctx  context.Context
	size Size
	seen map[uint64]bool // inodes with several names
}

// folder takes over fd.
func (m *measurement) folder(fd, depth int) error {
	dir := os.NewFile(uintptr(fd), "folder")
	defer dir.Close()
	if depth > MaxDepth {
		return ErrTooDeep
	}
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if err := m.entry(int(dir.Fd()), name, depth); err != nil {
				return err
			}
		}
		if len(names) == 0 || err != nil {
			return m.ctx.Err() // the end, or removed meanwhile
		}
	}
}

func (m *measurement) entry(at int, name string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil // gone meanwhile
	}
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if m.seen[st.Ino] {
			return nil
		}
		m.seen[st.Ino] = true
	}
	m.size.Bytes += uint64(st.Blocks) * 512
	m.size.Inodes++
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return m.ctx.Err()
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return err
	}
	if err != nil {
		return nil
	}
	return m.folder(fd, depth+1)
}

// Free gives the bytes that others than root may still use of a volume, its
// size, and what of both is used, so that an unchanged volume can be told.
type Free struct{ Bytes, Total, Blocks, Files uint64 }

// FreeOf reads the volume of a path.
func FreeOf(path string) (Free, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Free{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return Free{Bytes: s.Bavail * uint64(s.Bsize), Total: s.Blocks * uint64(s.Bsize), Blocks: s.Bfree, Files: s.Ffree}, nil
}
