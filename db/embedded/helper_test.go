package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const helperEnv = "CAIRN_EMBEDDED_HELPER"

// TestMain lets the test binary serve as a second process: it opens the folder
// in helperEnv, says so, waits for the end of its input, and closes.
func TestMain(m *testing.M) {
	dir := os.Getenv(helperEnv)
	if dir == "" {
		code := m.Run()
		if mould.dir != "" {
			_ = os.RemoveAll(filepath.Dir(mould.dir)) // at worst a leftover in /var/tmp
		}
		os.Exit(code)
	}
	c, err := Open(context.Background(), Options{Dir: dir, Log: os.Stderr})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("ready", c.Pid())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := c.Close(); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("closed")
}

// helper is another process that uses the cluster.
type helper struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	log *strings.Builder
}

func startHelper(t *testing.T, dir string) *helper {
	t.Helper()
	h := &helper{t: t, cmd: exec.Command(os.Args[0]), log: &strings.Builder{}}
	h.cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	h.cmd.Stderr = h.log
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a job of a terminal
	var err error
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.out = bufio.NewReader(out)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.cmd.Process.Kill(); _ = h.cmd.Wait() }) // mostly gone by then
	return h
}

func (h *helper) expect(word string) string {
	h.t.Helper()
	line, err := h.out.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, word) {
		rest, _ := io.ReadAll(h.out)
		h.t.Fatalf("helper said %q (%v), expected %q\n%s", line+string(rest), err, word, h.log)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, word))
}

func (h *helper) close() {
	h.t.Helper()
	h.in.Close()
	h.expect("closed")
	if err := h.cmd.Wait(); err != nil {
		h.t.Fatal(err)
	}
}

// kill ends the whole process group, as a terminal's signals reach it.
func (h *helper) kill() {
	h.t.Helper()
	if err := syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
	_ = h.cmd.Wait() // killed, as wanted
}

// folder is a place for a data folder that PostgreSQL's account can reach,
// which t.TempDir is not for root.
func folder(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "cairn-embedded-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "data")
	t.Cleanup(func() {
		if stopped, err := Stop(context.Background(), dir); err != nil || !stopped {
			var foreign *Foreign
			if !errors.As(err, &foreign) {
				t.Errorf("stopping what the test left: %v %v", stopped, err)
			}
		}
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// mould is one initialised cluster: copying it is quicker than initdb.
var mould struct {
	once sync.Once
	dir  string
	err  error
}

func cast() {
	base, err := os.MkdirTemp("/var/tmp", "cairn-embedded-test-")
	if err != nil {
		mould.err = err
		return
	}
	mould.dir = filepath.Join(base, "data")
	if mould.err = os.Chmod(base, 0o755); mould.err != nil {
		return
	}
	c, err := Open(context.Background(), Options{Dir: mould.dir})
	if mould.err = err; err == nil {
		mould.err = c.Close()
	}
}

// made is a folder with an initialised cluster that is not running.
func made(t *testing.T) string {
	t.Helper()
	dir := folder(t)
	fillIn(t, dir)
	return dir
}

func fillIn(t *testing.T, dir string) {
	t.Helper()
	if mould.once.Do(cast); mould.err != nil {
		t.Fatal(mould.err)
	}
	if _, err := Claim(dir); err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(mould.dir, dataName)
	if out, err := exec.Command("cp", "-a", "--", from, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

func open(t *testing.T, dir string) *Cluster {
	t.Helper()
	began := time.Now()
	c, err := Open(t.Context(), Options{Dir: dir, Log: testLog{t}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("open took %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() { _ = c.Close() }) // the tests that care have closed it
	return c
}

func shut(t *testing.T, c *Cluster) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func query(t *testing.T, c *Cluster, sql string) string {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), c.URL("postgres", c.Superuser()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	results, err := conn.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(results) == 0 || len(results[len(results)-1].Rows) == 0 {
		return ""
	}
	return string(results[len(results)-1].Rows[0][0])
}

func running(pid int) bool { return pid != 0 && syscall.Kill(pid, 0) == nil }

func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); running(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("pid %d still runs", pid)
		}
	}
}

// needRoot: what only root can set up. With CI=true it fails, so that it is not lost unseen.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("needs root")
	}
	t.Skip("needs root")
}

func ping(c *Cluster) error {
	conn, err := pgconn.Connect(context.Background(), c.URL("postgres", c.Superuser()))
	if err != nil {
		return err
	}
	return errors.Join(conn.Ping(context.Background()), conn.Close(context.Background()))
}

// spin keeps one backend computing until it is ended.
func spin(c *Cluster) {
	conn, err := pgconn.Connect(context.Background(), c.URL("postgres", c.Superuser()))
	if err == nil {
		_, _ = conn.Exec(context.Background(), "do $$ begin loop end loop; end $$").ReadAll() // ends by being killed
	}
}

func kill9(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("pid %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// sleeper is a process of PostgreSQL's account that has nothing to do with it.
func sleeper(t *testing.T) int {
	t.Helper()
	a, err := accountFor("")
	if err != nil {
		t.Fatal(err)
	}
	cmd := a.command("/", "/bin/sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // killed, as wanted
	return cmd.Process.Pid
}
