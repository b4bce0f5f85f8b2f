package sandbox

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// handProgram and omitProgram are built once: the release hand, and one that
// can leave a control out.
var handProgram, omitProgram, probeProgram string

// testParent is where the tests' control groups are.
const testParent = "cairn-sandbox-test"

func TestMain(m *testing.M) {
	if mode := os.Getenv("SANDBOX_TEST_HELPER"); mode != "" {
		os.Exit(helper(mode))
	}
	flag.Parse()
	dir, err := os.MkdirTemp("", "cairn-hand-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		handProgram, omitProgram = filepath.Join(dir, "hand"), filepath.Join(dir, "hand-omit")
		probeProgram = filepath.Join(dir, "escape")
		err = build(handProgram, "./hand/cmd")
	}
	if err == nil {
		err = build(probeProgram, "./escape/cmd")
	}
	if err == nil {
		err = build(omitProgram, "./hand/cmd", "-tags", "sandboxomit")
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

func build(to, what string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", to}, flags...)
	c := exec.Command("go", append(args, what)...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build the hand: %w\n%s", err, out)
	}
	return nil
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("needs root: run the tests of sandbox as root")
	}
	t.Skip("needs root")
}

// readSources opens every source of the hand from within a test: the test
// cache, which does not see the build in TestMain, then knows of them.
var readSources = sync.OnceValue(func() error {
	for _, dir := range []string{"hand", "ns", "layer", "seccomp", "landlock", "escape"} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			_, err = os.ReadFile(name)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
})

func testOptions(t testing.TB) Options {
	must(t, readSources())
	return Options{HandPath: handProgram, Parent: testParent} // slots as everyone: they are the host's
}

func newNative(t testing.TB) *Native {
	needRoot(t)
	n := NewNative(testOptions(t))
	t.Cleanup(func() { n.Close() })
	return n
}

func testSpec(t testing.TB) Spec {
	return Spec{ID: fmt.Sprintf("t%d-%d", os.Getpid(), time.Now().UnixNano()), RunDir: filepath.Join(t.TempDir(), "run")}
}

func prepare(t testing.TB, change func(*Spec)) *Instance {
	t.Helper()
	s := testSpec(t)
	if change != nil {
		change(&s)
	}
	i, err := newNative(t).Prepare(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	return i
}

// shell runs a command that must succeed and gives its output.
func shell(t testing.TB, i *Instance, command string) string {
	t.Helper()
	r, err := i.Exec(context.Background(), ExecRequest{Shell: command, Timeout: 60 * time.Second})
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	if r.ExitCode == nil || *r.ExitCode != 0 {
		t.Fatalf("%s: exit %v signal %d\n%s%s", command, r.ExitCode, r.Signal, r.Stdout.Text(), r.Stderr.Text())
	}
	return r.Stdout.Text()
}
