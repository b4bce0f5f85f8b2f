package db

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"cairn/domain/fault"
)

// BlobStore keeps large ciphertexts as files named by their SHA-256, in a folder of two levels. A blob is
// on disk before the event that names it is appended, and never changes.
type BlobStore struct{ dir string }

// OpenBlobStore uses the folder, making it when it does not exist.
func OpenBlobStore(dir string) (*BlobStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("blob store: %w", err)
	}
	return &BlobStore{dir: dir}, nil
}

// Put stores content and returns its name. Storing the same content again is free.
func (s *BlobStore) Put(content []byte) (string, error) {
	sum := sha256.Sum256(content)
	name := hex.EncodeToString(sum[:])
	if _, err := os.Stat(s.path(name)); err == nil {
		return name, nil
	}
	return s.PutStream(func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// PutStream stores what write writes, without ever holding it in memory, and returns its name. When write fails
// nothing is stored, and its error is returned as it is.
func (s *BlobStore) PutStream(write func(io.Writer) error) (string, error) {
	failed := func(err error) error {
		return fault.New(fault.Unavailable, "blob_store_failed",
			"blob store %s: %v: free some space or mend the folder; nothing was appended", s.dir, err)
	}
	temp, err := os.CreateTemp(s.dir, ".new-*")
	if err != nil {
		return "", failed(err)
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	sum, disk := sha256.New(), &diskWriter{file: temp}
	buffered := bufio.NewWriterSize(io.MultiWriter(disk, sum), 128<<10)
	err = write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if disk.err != nil {
		return "", failed(disk.err)
	}
	if err != nil {
		return "", err
	}
	name := hex.EncodeToString(sum.Sum(nil))
	if err := errors.Join(temp.Sync(), s.publish(temp.Name(), name)); err != nil {
		return "", failed(err)
	}
	return name, nil
}

// publish gives a whole file its name, for good: also when another process has only just made the folder.
func (s *BlobStore) publish(temp, name string) error {
	folder := filepath.Dir(s.path(name))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := os.Rename(temp, s.path(name)); err != nil {
		return err
	}
	return errors.Join(syncFolder(folder), syncFolder(s.dir))
}

// diskWriter remembers that the disk failed, and not the source.
type diskWriter struct {
	file *os.File
	err  error
}

func (w *diskWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

// open opens a blob without reading it.
func (s *BlobStore) open(name string) (*os.File, error) {
	if raw, err := hex.DecodeString(name); err != nil || len(raw) != sha256.Size {
		return nil, fmt.Errorf("blob name %.80q: want 64 hexadecimal digits", name)
	}
	f, err := os.Open(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.missing(name)
	}
	if err != nil {
		return nil, fault.New(fault.Unavailable, "blob_unreadable", "blob %s: %v", name, err)
	}
	return f, nil
}

func (s *BlobStore) missing(name string) error {
	return fault.New(fault.Unavailable, "blob_missing",
		"blob %s is missing from %s: restore the blob folder from the backup that belongs to this log", name, s.dir)
}

// Get reads a blob back and checks it against its name.
func (s *BlobStore) Get(name string) ([]byte, error) {
	if raw, err := hex.DecodeString(name); err != nil || len(raw) != sha256.Size {
		return nil, fmt.Errorf("blob name %.80q: want 64 hexadecimal digits", name)
	}
	content, err := os.ReadFile(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.missing(name)
	}
	if err != nil {
		return nil, fault.New(fault.Unavailable, "blob_unreadable", "blob %s: %v", name, err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != name {
		return nil, fault.New(fault.Unavailable, "blob_altered",
			"blob %s in %s was altered: its content has SHA-256 %x: restore it from the backup", name, s.dir, sum)
	}
	return content, nil
}

func (s *BlobStore) path(name string) string { return filepath.Join(s.dir, name[:2], name[2:]) }

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func flock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }
