package serve

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"cairn/sandbox/hand/wire"
)

const workspace = "/workspace"

func (s *Server) runFile(q *request, m wire.File) ([]byte, error) {
	if m.Path == "" && m.Op != wire.OpGlob && m.Op != wire.OpGrep {
		return nil, fault(wire.CodeBadArgument, "path is empty")
	}
	path := filepath.Clean(m.Path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(workspace, path)
	}
	m.Path = path
	var d wire.FileDone
	var err error
	switch m.Op {
	case wire.OpRead:
		d, err = s.read(q, m)
	case wire.OpWrite:
		d, err = s.write(q, m)
	case wire.OpEdit:
		d, err = edit(m)
	case wire.OpStat:
		d, err = stat(m)
	case wire.OpGlob:
		d, err = s.glob(q, m)
	case wire.OpGrep:
		d, err = s.grep(q, m)
	}
	return d.Encode(), err
}

// open opens without following /proc's magic links and never /proc itself:
// through them the agent would reach the hand's own memory and descriptors,
// since /proc/self is the hand here.
func open(path string) (*os.File, os.FileInfo, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if err := refuseProc(fd, path); err != nil {
		f.Close()
		return nil, nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

func refuseProc(fd int, path string) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC {
		return fault(wire.CodeDenied, "%s: file tools do not open /proc; use a shell command", path)
	}
	return nil
}

func openRegular(path string) (*os.File, os.FileInfo, error) {
	f, st, err := open(path)
	if err != nil {
		return nil, nil, err
	}
	if err := wantRegular(st, path); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

func wantRegular(st os.FileInfo, path string) error {
	switch {
	case st.IsDir():
		return fault(wire.CodeIsDirectory, "%s is a directory", path)
	case !st.Mode().IsRegular():
		return fault(wire.CodeNotRegular, "%s is not a regular file", path)
	}
	return nil
}

func (s *Server) read(q *request, m wire.File) (wire.FileDone, error) {
	f, st, err := openRegular(m.Path)
	if err != nil {
		return wire.FileDone{}, err
	}
	defer f.Close()
	d := wire.FileDone{Size: uint64(st.Size())}
	buf := make([]byte, wire.Chunk)
	for off, left := int64(m.Offset), int64(m.Limit); ; {
		n, err := f.ReadAt(buf[:min(left+1, wire.Chunk)], off)
		if int64(n) > left {
			n, d.Truncated = int(left), true
		}
		if !s.send(q, wire.StreamOutput, buf[:n]) {
			return d, fault(wire.CodeIO, "cancelled")
		}
		off, left = off+int64(n), left-int64(n)
		if errors.Is(err, io.EOF) || d.Truncated {
			return d, nil
		}
		if err != nil {
			return d, err
		}
	}
}

// write replaces the file as a whole: a reader, or a crash, sees the old
// content or the new. A hard link to the old content stays as it was.
func (s *Server) write(q *request, m wire.File) (wire.FileDone, error) {
	w, d, err := replace(m.Path, os.FileMode(m.Mode).Perm())
	if err != nil {
		return d, err
	}
	defer w.abort()
	for {
		p, ok := q.body.Get()
		if !ok {
			break
		}
		if d.Size += uint64(len(p)); d.Size > m.Limit {
			return d, fault(wire.CodeTooLarge, "%s: more than %d bytes", m.Path, m.Limit)
		}
		if _, err := w.f.Write(p); err != nil {
			return d, err
		}
		if !s.consumed(q, len(p)) {
			break
		}
	}
	if q.cancelled.Load() {
		return d, fault(wire.CodeIO, "cancelled")
	}
	return d, w.commit()
}

func edit(m wire.File) (wire.FileDone, error) {
	if m.Old == "" || m.Old == m.New {
		return wire.FileDone{}, fault(wire.CodeBadArgument, "old text is empty or equals the new text")
	}
	f, st, err := openRegular(m.Path)
	if err != nil {
		return wire.FileDone{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(m.Limit)+1))
	if err != nil {
		return wire.FileDone{}, err
	}
	if uint64(len(b)) > m.Limit {
		return wire.FileDone{}, fault(wire.CodeTooLarge, "%s has %d bytes, the limit for an edit is %d", m.Path, st.Size(), m.Limit)
	}
	n := bytes.Count(b, []byte(m.Old))
	switch {
	case n == 0:
		return wire.FileDone{}, fault(wire.CodeNoMatch, "%s: the old text does not occur", m.Path)
	case n > 1 && !m.All:
		return wire.FileDone{}, fault(wire.CodeNotUnique, "%s: the old text occurs %d times; give more context or replace all", m.Path, n)
	}
	if grown := len(b) + n*(len(m.New)-len(m.Old)); grown > int(m.Limit) {
		return wire.FileDone{}, fault(wire.CodeTooLarge, "%s would have %d bytes, the limit for an edit is %d", m.Path, grown, m.Limit)
	}
	b = bytes.ReplaceAll(b, []byte(m.Old), []byte(m.New))
	w, d, err := replace(m.Path, 0)
	if err != nil {
		return d, err
	}
	defer w.abort()
	if _, err := w.f.Write(b); err != nil {
		return d, err
	}
	d.Size, d.Count = uint64(len(b)), uint64(n)
	return d, w.commit()
}

func stat(m wire.File) (wire.FileDone, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(unix.AT_FDCWD, m.Path, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return wire.FileDone{}, &os.PathError{Op: "stat", Path: m.Path, Err: err}
	}
	return wire.FileDone{Size: uint64(st.Size), Mode: uint64(st.Mode), ModTime: st.Mtim.Nano()}, nil
}

// osFault translates what the kernel says into a code.
func osFault(err error) *Fault {
	codes := []struct {
		is   error
		code string
	}{
		{syscall.ENOENT, wire.CodeNotFound},
		{syscall.EACCES, wire.CodeDenied},
		{syscall.EPERM, wire.CodeDenied},
		{syscall.EROFS, wire.CodeDenied},
		{syscall.ELOOP, wire.CodeDenied},
		{syscall.EISDIR, wire.CodeIsDirectory},
		{syscall.ENOTDIR, wire.CodeNotDirectory},
		{syscall.ENXIO, wire.CodeNotRegular},
		{syscall.EFBIG, wire.CodeTooLarge},
		{syscall.ENOSPC, wire.CodeNoSpace},
		{syscall.EDQUOT, wire.CodeNoSpace},
		{syscall.ENAMETOOLONG, wire.CodeBadArgument},
		{syscall.EINVAL, wire.CodeBadArgument},
	}
	for _, c := range codes {
		if errors.Is(err, c.is) {
			return fault(c.code, "%v", err)
		}
	}
	return fault(wire.CodeIO, "%v", err)
}
