package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	startLock   = "start.lock"
	clusterLock = "cluster.lock"
	lifeLock    = "postmaster.lock"
	dataName    = "postgres"
	logName     = "postgres.log"
	initPrefix  = "postgres.init-"
)

// DefaultDir is the data folder when none is given: $XDG_DATA_HOME/cairn or
// ~/.local/share/cairn, and for root /var/lib/cairn, since PostgreSQL's account
// cannot enter root's home.
func DefaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/cairn", nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "cairn"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no data folder: %w; fix: set XDG_DATA_HOME or give --data", err)
	}
	return filepath.Join(home, ".local", "share", "cairn"), nil
}

// Claim makes dir when it is missing and marks it as a data folder of Cairn.
// Rooms that write into it before Open call Claim first, because a folder with
// anything else in it and no mark is refused: *Foreign. It returns the path
// absolute and without links, as all processes must agree on it.
func Claim(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("data folder is empty; fix: give --data, or use DefaultDir")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("data folder %s: %w", dir, err)
	}
	if err := mkdirOpen(filepath.Dir(dir)); err != nil {
		return "", full(dir, "making the folder", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", full(dir, "making the folder", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", fmt.Errorf("data folder: %w", err)
	}
	if err := ours(dir); err != nil {
		return "", err
	}
	f, err := openLock(filepath.Join(dir, startLock))
	if err != nil {
		return "", full(dir, "marking the folder", err)
	}
	return dir, f.Close()
}

func ours(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	var other string
	for _, e := range entries {
		switch e.Name() {
		case startLock:
			return nil
		case dataName:
			if _, err := os.Stat(filepath.Join(dir, dataName, "PG_VERSION")); err == nil {
				return nil // restored from a backup without the lock files
			}
			other = e.Name()
		case "lost+found": // an otherwise empty disk
		default:
			other = e.Name()
		}
	}
	if other != "" {
		return &Foreign{Dir: dir, Entry: other, Why: "it is not empty and Cairn did not make it"}
	}
	return nil
}

// inspect tells the major version of the data directory, 0 when there is none yet.
func inspect(data string) (int, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err == nil {
		major, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || major <= 0 {
			return 0, &Foreign{Dir: data, Entry: "PG_VERSION", Why: fmt.Sprintf("its version reads %.20q", text)}
		}
		return major, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("cluster: %w", err)
	}
	entries, err := os.ReadDir(data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("cluster: %w", err)
	}
	if len(entries) > 0 {
		return 0, &Foreign{Dir: data, Entry: entries[0].Name(), Why: "it is not empty and has no PG_VERSION"}
	}
	return 0, nil
}

// admit lets the account pass through dir, the one folder on the way that is
// Cairn's own to change: group of the account, and no more than the right to enter.
func admit(a account, dir string) error {
	info, err := os.Stat(dir)
	if err != nil || !a.drop || a.enters(info) {
		return err
	}
	uid, gid, err := ownerOf(dir)
	if err != nil || uid != 0 || (gid != 0 && gid != a.gid) {
		return err // not ours to change: reach names it
	}
	if err := os.Chown(dir, -1, a.gid); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return os.Chmod(dir, info.Mode().Perm()|0o010)
}

// full turns "no space left" into *DiskFull and gives other errors their place.
func full(dir, doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || strings.Contains(err.Error(), "No space left on device") {
		return &DiskFull{Dir: dir, Doing: doing, Free: freeBytes(dir)}
	}
	return fmt.Errorf("data folder %s, %s: %w", dir, doing, err)
}

func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	for unix.Statfs(dir, &st) != nil {
		if dir == filepath.Dir(dir) {
			return 0
		}
		dir = filepath.Dir(dir)
	}
	return int64(st.Bavail) * st.Bsize
}
