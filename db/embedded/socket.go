package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxSocketPath is sun_path of unix(7) without its final NUL, in bytes.
const maxSocketPath = 107

const port = 5432 // only part of the socket's file name

// nameFor identifies a data folder, in process titles and short paths.
func nameFor(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "cairn-" + hex.EncodeToString(sum[:8])
}

// chooseSocket is asked only while nothing runs; later the server's own record counts.
func chooseSocket(a account, dir string) string {
	own := filepath.Join(dir, "socket")
	if fits(own) {
		return own
	}
	return filepath.Join(shortBase(a), nameFor(dir))
}

// fits excludes commas too: clients read them as a list of hosts.
func fits(dir string) bool {
	return len(socketFile(dir, port)) <= maxSocketPath && !strings.Contains(dir, ",")
}

func socketFile(dir string, port int) string {
	return filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", port))
}

// shortBase is a folder where a stranger can at most be in the way, never read
// or replace: makeSocketDir checks the owner. Root's own runtime folder is closed to the account.
func shortBase(a account) string {
	if a.drop {
		return "/run"
	}
	dir := fmt.Sprintf("/run/user/%d", a.uid)
	if uid, _, err := ownerOf(dir); err == nil && uid == a.uid {
		return dir
	}
	return "/tmp"
}

// makeSocketDir makes dir, or checks that it is a folder of the account alone:
// whoever may enter it is superuser of the cluster.
func makeSocketDir(a account, dir string) error {
	if err := os.Mkdir(dir, 0o700); err == nil {
		return a.give(dir)
	} else if !errors.Is(err, fs.ErrExist) {
		return full(dir, "making the socket folder", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("socket folder: %w", err)
	}
	if !info.IsDir() {
		return &Foreign{Dir: dir, Entry: info.Mode().String(), Why: "the socket folder is not a folder"}
	}
	uid, _, err := ownerOf(dir)
	if err == nil && uid == os.Geteuid() && a.drop { // a start that was cut off before the folder was given away
		uid, err = a.uid, a.give(dir)
	}
	if err != nil {
		return fmt.Errorf("socket folder: %w", err)
	}
	if uid != a.uid {
		return &WrongOwner{Path: dir, Owner: uid, Wants: a.uid}
	}
	return os.Chmod(dir, 0o700)
}

// quoted is a name in a list setting of PostgreSQL.
func quoted(dir string) string { return `"` + strings.ReplaceAll(dir, `"`, `""`) + `"` }
