package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOtherMajorIsRefusedAndKept(t *testing.T) {
	dir := made(t)
	c := open(t, dir)
	shut(t, c)
	version := filepath.Join(dir, dataName, "PG_VERSION")
	if err := os.WriteFile(version, []byte("12\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := list(t, dir)
	_, err := Open(t.Context(), Options{Dir: dir})
	var wrong *WrongVersion
	if !errors.As(err, &wrong) || wrong.Major != 12 || !strings.Contains(err.Error(), "PostgreSQL 12") || !strings.Contains(err.Error(), strconv.Itoa(c.Version())+" (") {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	if after := list(t, dir); after != before {
		t.Errorf("changed from %s to %s", before, after)
	}
}

func list(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

func TestForeignFoldersAreRefused(t *testing.T) {
	dir := folder(t)
	if err := os.MkdirAll(filepath.Join(dir, "photos"), 0o755); err != nil {
		t.Fatal(err)
	}
	var foreign *Foreign
	if _, err := Open(t.Context(), Options{Dir: dir}); !errors.As(err, &foreign) || foreign.Entry != "photos" {
		t.Errorf("got %v", err)
	}
	if got := list(t, dir); strings.Count(got, "\n") != 1 {
		t.Errorf("it now holds %s", got)
	}

	dir = folder(t)
	if _, err := Claim(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, dataName, "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, dataName), accountUID(t), -1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: dir}); !errors.As(err, &foreign) || foreign.Entry != "mine" {
		t.Errorf("got %v", err)
	}
}

func accountUID(t *testing.T) int {
	t.Helper()
	a, err := accountFor("")
	if err != nil {
		t.Fatal(err)
	}
	return a.uid
}

// A claimed folder may hold what other rooms put there.
func TestClaimedFolderIsOurs(t *testing.T) {
	dir := folder(t)
	for range 2 {
		if _, err := Claim(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "key"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, open(t, dir))
}

func TestUnreachableParentIsNamed(t *testing.T) {
	needRoot(t)
	dir := folder(t)
	locked := filepath.Join(filepath.Dir(dir), "locked")
	if err := os.Mkdir(locked, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Options{Dir: filepath.Join(locked, "a", "data")})
	var blocked *Unreachable
	if !errors.As(err, &blocked) || blocked.Folder != locked || !strings.Contains(err.Error(), "mode 0700") {
		t.Errorf("got %v", err)
	}
	t.Log(err)
}

func TestLongAndOddPaths(t *testing.T) {
	for _, name := range []string{strings.Repeat("long", 30), "a,b", "sp ace'q\"uote+%", "[glob]*?"} {
		t.Run(name[:3], func(t *testing.T) {
			dir := filepath.Join(folder(t), name)
			if _, err := Claim(filepath.Dir(dir)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			fillIn(t, dir)
			h := startHelper(t, dir)
			server := h.expect("ready")
			c := open(t, dir)
			if strconv.Itoa(c.Pid()) != server || query(t, c, "select 1") != "1" {
				t.Errorf("server %d, expected %s", c.Pid(), server)
			}
			socket := c.socket
			h.close()
			shut(t, c)
			if _, err := os.Stat(socket); filepath.Dir(socket) != dir && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", socket, err)
			}
			shut(t, open(t, dir))
		})
	}
}

// Somebody who made the short folder first would be superuser of the cluster.
func TestSocketFolderOfAStrangerIsRefused(t *testing.T) {
	needRoot(t)
	dir := filepath.Join(reachable(t), "socket")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	a, err := accountFor("")
	if err != nil {
		t.Fatal(err)
	}
	var owner *WrongOwner
	if err := makeSocketDir(a, dir); !errors.As(err, &owner) || owner.Owner != 12345 {
		t.Errorf("got %v", err)
	}
	link := dir + "-link"
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	var foreign *Foreign
	if err := makeSocketDir(a, link); !errors.As(err, &foreign) {
		t.Errorf("a link: %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	needRoot(t)
	dir := folder(t)
	disk := filepath.Dir(dir)
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=20m,mode=0755"); err != nil {
		t.Fatal(err)
	}
	mounted := true
	defer func() {
		if mounted {
			_ = unix.Unmount(disk, unix.MNT_DETACH) // the failure that led here is reported already
		}
	}()
	_, err := Open(t.Context(), Options{Dir: dir})
	var full *DiskFull
	if !errors.As(err, &full) {
		t.Errorf("got %v", err)
	}
	t.Log(err)
	if left, _ := filepath.Glob(filepath.Join(dir, "postgres*")); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	// With room again it starts; then the full disk meets the start of an existing cluster.
	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=200m"); err != nil {
		t.Fatal(err)
	}
	shut(t, open(t, dir))
	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	if _, err = Open(t.Context(), Options{Dir: dir}); !errors.As(err, &full) {
		t.Errorf("got %v", err)
	}
	t.Log(err)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	shut(t, open(t, dir))
	if err := unix.Unmount(disk, 0); err != nil { // busy would mean that something still runs
		t.Error(err)
		return
	}
	mounted = false
}

func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<16); ; {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

func TestPidOfAnotherProcess(t *testing.T) {
	dir := made(t)
	shut(t, open(t, dir))
	stranger := sleeper(t)
	socket := filepath.Join(dir, "socket")
	text := strconv.Itoa(stranger) + "\n" + filepath.Join(dir, dataName) + "\n1\n5432\n" + socket + "\n\n  1 1\nready   \n"
	for _, file := range []string{filepath.Join(dir, dataName, "postmaster.pid"), socketFile(socket, port) + ".lock"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, open(t, dir))
	if !running(stranger) {
		t.Error("the stranger was stopped")
	}
}

func TestKilledInitIsStartedOver(t *testing.T) {
	dir := folder(t)
	h := startHelper(t, dir)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if half, _ := filepath.Glob(filepath.Join(dir, initPrefix+"*", "base")); len(half) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("initdb did not begin")
		}
	}
	h.kill()
	c := open(t, dir)
	if query(t, c, "select 1") != "1" {
		t.Error("no answer")
	}
	shut(t, c)
	if half, _ := filepath.Glob(filepath.Join(dir, initPrefix+"*")); len(half) > 0 {
		t.Errorf("left %v", half)
	}
}

func TestDamagedClusterShowsItsLog(t *testing.T) {
	dir := made(t)
	shut(t, open(t, dir))
	if err := os.Remove(filepath.Join(dir, dataName, "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Options{Dir: dir})
	var failed *StartFailed
	if !errors.As(err, &failed) || !strings.Contains(failed.Tail, "pg_control") {
		t.Errorf("got %v", err)
	}
	t.Log(err)
}
