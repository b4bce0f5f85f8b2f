package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests run the real command line: the test binary is cairn itself when asked so.
const asCairn = "CAIRN_TEST_AS_CAIRN"

func TestMain(m *testing.M) {
	if os.Getenv(asCairn) != "" {
		os.Exit(execute(context.Background(), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// installationDir is a data folder that PostgreSQL's own user can reach. What still runs on it is stopped.
func installationDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "cairn-cli-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	t.Cleanup(func() {
		for _, pid := range processesOf(data) {
			t.Errorf("process %d still uses %s: %s", pid, data, commandLine(pid))
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return data
}

// processesOf lists the processes whose command line names the folder.
func processesOf(data string) []int {
	var pids []int
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, entry := range entries {
		var pid int
		fmt.Sscanf(entry, "/proc/%d/cmdline", &pid)
		if line := commandLine(pid); pid != os.Getpid() && strings.Contains(line, data) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(string(text), "\x00", " ")
}

// result is one finished command line.
type result struct {
	code           int
	stdout, stderr string
}

// command prepares a command line of cairn.
func command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), asCairn+"=1")
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 30 * time.Second
	return c
}

// cairn runs a command line to its end.
func cairn(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	c := command(ctx, args...)
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := c.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("cairn %v: %v\n%s", args, err, stderr.String())
	}
	return result{code: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

func (r result) want(t *testing.T, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", r.code, code, r.stdout, r.stderr)
	}
	return r
}

// lines decodes JSON lines.
func lines[T any](t *testing.T, text string) []T {
	t.Helper()
	var all []T
	decoder := json.NewDecoder(strings.NewReader(text))
	for {
		var one T
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("JSON lines: %v\n%s", err, text)
		}
		all = append(all, one)
	}
}
