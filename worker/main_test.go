package worker_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// handProgram is the hand of the sandbox, built once for this test binary and its child processes.
var handProgram string

func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		os.Exit(child(mode))
	}
	dir, err := os.MkdirTemp("", "cairn-worker-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		handProgram = filepath.Join(dir, "hand")
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", handProgram, "cairn/sandbox/hand/cmd")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		var out []byte
		if out, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("build the hand: %w\n%s", err, out)
		}
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		flag.Parse()
		if err := flag.Set("test.parallel", "6"); err != nil { // they wait more than they compute
			fmt.Fprintln(os.Stderr, err)
		}
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}
