package embedded

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// unpack writes the package's native/ folder and its licence to dir. npm tarballs
// cannot hold links, so the package lists them in native/pg-symlinks.json as
// [{"source": target of the link, "target": the link}], relative to the package.
func unpack(tarball, dir string) error {
	f, err := os.Open(tarball)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return relink(dir)
		}
		if err != nil {
			return err
		}
		name, wanted := inPackage(h.Name)
		if !wanted || h.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeFile(r, dir, name, h.FileInfo().Mode()); err != nil {
			return err
		}
	}
}

func inPackage(name string) (string, bool) {
	name = strings.TrimPrefix(name, "package/")
	if name == "LICENSE.md" {
		return name, true
	}
	return strings.CutPrefix(name, "native/")
}

// writeFile sets modes itself: under a strict umask PostgreSQL's account could not read the files.
func writeFile(r io.Reader, dir, name string, mode fs.FileMode) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the tarball holds %q, which leads out of it", name)
	}
	path := filepath.Join(dir, name)
	if err := mkdirOpen(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Chmod(mode.Perm()&0o755|0o644), f.Close())
}

// mkdirOpen makes dir and its missing parents with mode 0755 whatever the umask is.
func mkdirOpen(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := mkdirOpen(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return os.Chmod(dir, 0o755)
}

func relink(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("pg-symlinks.json: %w", err)
	}
	for _, l := range links {
		to, okTo := strings.CutPrefix(l.Source, "native/")
		at, okAt := strings.CutPrefix(l.Target, "native/")
		if !okTo || !okAt || !filepath.IsLocal(to) || !filepath.IsLocal(at) {
			return fmt.Errorf("pg-symlinks.json links %q to %q, which leads out of the package", l.Target, l.Source)
		}
		rel, err := filepath.Rel(filepath.Dir(at), to)
		if err != nil {
			return err
		}
		if err := os.Symlink(rel, filepath.Join(dir, at)); err != nil {
			return err
		}
	}
	return nil
}

// syncDisk flushes the whole file system below path: a rename alone could
// survive a power cut that the files did not.
func syncDisk(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
