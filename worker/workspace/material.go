package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/file"
	"cairn/domain/run"
)

// Contents gives what a space has stored: a *db.DB.
type Contents interface {
	OpenContent(ctx context.Context, space event.ID, content event.Content) (io.ReadCloser, error)
}

// maxManifest bounds the list of files that is held in memory, in bytes.
const maxManifest = 64 << 20

// material is the folder that holds the files of a manifest, which any number of runs stand on:
//
//	absent --locked--> written beside, each file checked against its digest, synced --renamed--> there, for good
//
// Whoever is killed leaves a folder beside it that the next one removes; so what is there is whole.
func (c Config) material(ctx context.Context, space event.ID, files run.Files) (string, error) {
	if !files.Manifest.IsWhole(space) {
		return "", &Refusal{Code: run.CodeContentMissing, Message: "the list of files is not one of the run's space: open a new conversation"}
	}
	name := files.Manifest.Blob
	dir := filepath.Join(c.Layers, name)
	if there(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(c.Layers, 0o700); err != nil {
		return "", refuse("the folder for files of spaces cannot be made: %v", err)
	}
	unlock, err := lockLayer(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if there(dir) {
		return dir, nil
	}
	beside := filepath.Join(c.Layers, ".new-"+name)
	if err := os.RemoveAll(beside); err != nil {
		return "", refuse("what a killed worker left cannot be removed: %v", err)
	}
	if err := c.write(ctx, space, files.Manifest, beside); err != nil {
		return "", c.unwritten(ctx, beside, err)
	}
	if err := publish(beside, dir); err != nil {
		return "", c.unwritten(ctx, beside, err)
	}
	return dir, nil
}

func there(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}

// unwritten says what the failure means for the run.
func (c Config) unwritten(ctx context.Context, beside string, err error) error {
	err = errors.Join(err, os.RemoveAll(beside))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case fault.HasCode(err, "subject_erased"):
		return &Refusal{Code: run.CodeContentErased, Message: err.Error()}
	case fault.KindOf(err) != "":
		return &Refusal{Code: run.CodeContentMissing, Message: err.Error()}
	case errors.As(err, new(*os.PathError)) || errors.As(err, new(*os.LinkError)) || errors.As(err, new(unix.Errno)):
		return refuse("the files of the source cannot be laid out in %s: %v: free some space, or mend the folder", c.Layers, err)
	}
	return err
}

// lockLayer waits for whoever lays out the same files.
func lockLayer(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, refuse("the lock of a layer cannot be opened: %v", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, refuse("layer lock %s: %v", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// write lays the files out in a new folder.
func (c Config) write(ctx context.Context, space event.ID, manifest event.Content, dir string) error {
	list, err := c.manifest(ctx, space, manifest)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Chmod(".", 0o755); err != nil {
		return err
	}
	each := len(list.Files) <= maxSyncs
	made := map[string]bool{}
	for _, entry := range list.Files {
		for _, folder := range file.Parents(entry.Path) {
			if made[folder] {
				continue
			}
			if err := errors.Join(root.Mkdir(folder, 0o755), root.Chmod(folder, 0o755)); err != nil {
				return err
			}
			made[folder] = true
		}
		if err := c.writeFile(ctx, root, space, entry, each); err != nil {
			return err
		}
	}
	if each {
		return nil
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(folder.Fd())), folder.Close())
}

// maxSyncs is up to how many files are synced one by one: more are faster with all else that the disk has to do.
const maxSyncs = 500

func (c Config) manifest(ctx context.Context, space event.ID, content event.Content) (file.Manifest, error) {
	r, err := c.Contents.OpenContent(ctx, space, content)
	if err != nil {
		return file.Manifest{}, err
	}
	defer r.Close()
	raw, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return file.Manifest{}, err
	}
	if len(raw) > maxManifest {
		return file.Manifest{}, refuse("the list of files has more than %d bytes: choose a folder with less", maxManifest)
	}
	return file.DecodeManifest(raw, space)
}

func (c Config) writeFile(ctx context.Context, root *os.Root, space event.ID, entry file.Entry, sync bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if entry.Executable {
		mode = 0o755
	}
	from, err := c.Contents.OpenContent(ctx, space, entry.Content)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := root.OpenFile(entry.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), from)
	if err == nil && sync {
		err = to.Sync()
	}
	if err := errors.Join(err, to.Chmod(mode), to.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != entry.Digest {
		return fault.New(fault.Unavailable, "blob_altered", "blob %s holds content with SHA-256 %s, its manifest says %s: restore it from the backup", entry.Content.Blob, got, entry.Digest)
	}
	return nil
}

// publish gives a whole folder its name, once all of it is on disk.
func publish(beside, dir string) error {
	if err := os.Rename(beside, dir); err != nil {
		return fmt.Errorf("name a layer: %w", err)
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}
