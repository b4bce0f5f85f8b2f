package serve

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"cairn/sandbox/hand/wire"
)

// replacement is a new file beside the one it will replace.
type replacement struct {
	f    *os.File
	path string
}

// replace begins to replace the file at path, making its folders. mode 0
// keeps the permission bits of an existing file and gives 0644 to a new one.
func replace(path string, mode os.FileMode) (*replacement, wire.FileDone, error) {
	var d wire.FileDone
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link stays a link; what it leads to is replaced
	}
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		d.Created = true
		if mode == 0 {
			mode = 0o644
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, d, err
		}
	case err != nil:
		return nil, d, err
	default:
		if err := wantRegular(st, path); err != nil {
			return nil, d, err
		}
		if err := unix.Access(path, unix.W_OK); err != nil {
			return nil, d, &os.PathError{Op: "write", Path: path, Err: err}
		}
		if mode == 0 {
			mode = st.Mode().Perm()
		}
	}
	w, err := temporary(path, mode)
	return w, d, err
}

func temporary(path string, mode os.FileMode) (*replacement, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".cairn-*")
	if err != nil {
		return nil, err
	}
	w := &replacement{f: f, path: path}
	if err := refuseProc(int(f.Fd()), path); err != nil {
		w.abort()
		return nil, err
	}
	if err := f.Chmod(mode); err != nil {
		w.abort()
		return nil, err
	}
	return w, nil
}

// commit puts the new file in the place of the old.
func (w *replacement) commit() error {
	name := w.f.Name()
	if err := w.f.Close(); err != nil {
		return err
	}
	if err := os.Rename(name, w.path); err != nil {
		return err
	}
	w.f = nil
	return nil
}

// abort removes the new file unless it was committed.
func (w *replacement) abort() {
	if w.f != nil {
		w.f.Close()
		os.Remove(w.f.Name())
	}
}
