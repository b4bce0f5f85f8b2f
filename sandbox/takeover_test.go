package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cairn/sandbox/cgroup"
)

func helperCommand(mode string, s Spec, lower string) *exec.Cmd {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), "SANDBOX_TEST_HELPER="+mode, "HELPER_ID="+s.ID, "HELPER_RUN="+s.RunDir,
		"HELPER_HAND="+handProgram, "HELPER_LOWER="+lower)
	c.Stderr = os.Stderr
	return c
}

// startWorker runs a worker in another process until it has work in flight.
func startWorker(t *testing.T, s Spec, lower string) (*exec.Cmd, string) {
	t.Helper()
	c := helperCommand("work", s, lower)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	f := strings.Fields(line)
	if err != nil || len(f) != 4 || f[0] != "ready" || f[2] != "ok" {
		t.Fatalf("worker says %q: %v", line, err)
	}
	return c, f[1]
}

func group(t *testing.T, path string) *cgroup.Group {
	t.Helper()
	tree, err := cgroup.Detect()
	must(t, err)
	g, err := tree.Open(path)
	must(t, err)
	return g
}

func workspaceOfWorker(t *testing.T) string {
	lower := t.TempDir()
	must(t, os.WriteFile(lower+"/lower", []byte("lower\n"), 0o644))
	must(t, os.WriteFile(lower+"/gone", nil, 0o644))
	return lower
}

func TestWorkerDiesAndAnotherTakesOver(t *testing.T) {
	needRoot(t)
	lower := workspaceOfWorker(t)
	before := fingerprint(t, lower)
	s := testSpec(t)
	c, path := startWorker(t, s, lower)
	must(t, c.Process.Kill())
	_, _ = c.Process.Wait()
	g := group(t, path)
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		empty, err := g.Empty()
		must(t, err)
		if empty {
			t.Logf("empty after %v", time.Since(begin).Round(time.Millisecond))
			break
		}
		if time.Since(begin) > time.Second {
			t.Fatal("processes survived the worker for a second")
		}
	}
	must(t, KillGroup(context.Background(), path))
	s.Lowers = []string{lower}
	for range 3 { // again and again: each owner leaves a usable upper
		i, err := newNative(t).Prepare(context.Background(), s)
		must(t, err)
		if out := shell(t, i, "cat kept lower; ls; stat -c %U kept d; echo again >> kept"); !strings.HasPrefix(out, "kept\n") || !strings.Contains(out, "lower\nchanged\nd\nkept\nlower\nagent\nagent\n") {
			t.Errorf("%q", out)
		}
		must(t, i.Close())
	}
	if fingerprint(t, lower) != before {
		t.Error("the lower changed")
	}
}

func TestStoppedWorkerIsTakenOver(t *testing.T) {
	needRoot(t)
	lower := workspaceOfWorker(t)
	s := testSpec(t)
	c, path := startWorker(t, s, lower)
	defer func() { _ = c.Process.Kill(); _, _ = c.Process.Wait() }()
	// While it lives, nobody else gets its folder or its group.
	if _, err := newNative(t).Prepare(context.Background(), s); !errors.Is(err, ErrBusy) {
		t.Errorf("second owner: %v", err)
	}
	other := testSpec(t)
	other.RunDir = s.RunDir
	if _, err := newNative(t).Prepare(context.Background(), other); !errors.Is(err, ErrBusy) {
		t.Errorf("second owner of the folder: %v", err)
	}
	other = testSpec(t)
	other.ID = s.ID
	if _, err := newNative(t).Prepare(context.Background(), other); !errors.Is(err, ErrBusy) {
		t.Errorf("second owner of the id: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	must(t, KillGroup(ctx, path)) // kills the sandbox, not its worker
	if g := group(t, path); g.Exists() {
		t.Error("the group is still there")
	}
	must(t, KillGroup(ctx, path)) // again: no error
}

func TestKillGroupRefusesStrangePaths(t *testing.T) {
	needRoot(t)
	for _, path := range []string{"", "/", "/cairn", "cairn/x", "/cairn/..", "/../x", "/cairn/x/../y", "/a/b/c/d/e", "/cairn/x y"} {
		if err := KillGroup(context.Background(), path); err == nil {
			t.Errorf("%q was accepted", path)
		}
	}
}

func TestKillEndsCalls(t *testing.T) {
	i := prepare(t, nil)
	done := make(chan error, 1)
	go func() {
		_, err := i.Exec(context.Background(), ExecRequest{Shell: "sleep 1000"})
		done <- err
	}()
	time.Sleep(100 * time.Millisecond)
	must(t, i.Kill(context.Background()))
	if err := <-done; !errors.Is(err, ErrHandLost) {
		t.Error(err)
	}
	<-i.Lost()
	if _, err := i.Read(context.Background(), "x", 0, 0); !errors.Is(err, ErrHandLost) {
		t.Error(err)
	}
}

func TestHandDies(t *testing.T) {
	i := prepare(t, nil)
	must(t, i.prep.hand.os.Kill())
	_, err := i.Exec(context.Background(), ExecRequest{Shell: "sleep 1000"})
	if !errors.Is(err, ErrHandLost) {
		t.Error(err)
	}
	<-i.Lost()
}

// state counts what a sandbox could leave behind on the host.
func state(t *testing.T) string {
	t.Helper()
	count := func(dir string) int {
		names, err := os.ReadDir(dir)
		must(t, err)
		return len(names)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	kids, err := children(os.Getpid())
	must(t, err)
	groups := 0
	for _, c := range []string{"pids", "memory", "freezer", "cpuacct", "unified"} {
		if names, err := os.ReadDir("/sys/fs/cgroup/" + c + "/" + testParent); err == nil {
			for _, n := range names {
				if n.IsDir() {
					groups++
				}
			}
		}
	}
	ours := 0 // other tests mount too
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "overlay") || strings.Contains(line, os.TempDir()) || strings.Contains(line, "cairn-hand") {
			ours++
		}
	}
	return fmt.Sprintf("fds %d, mounts %d, children %d, groups %d", count("/proc/self/fd"), ours, len(kids), groups)
}

func TestNothingIsLeftBehind(t *testing.T) {
	n := newNative(t)
	lower := tree(t, 1000)
	cycle := func() {
		s := testSpec(t)
		s.Lowers = []string{lower}
		i, err := n.Prepare(context.Background(), s)
		must(t, err)
		shell(t, i, "(sleep 1000 &) ; (setsid sleep 1001 >/dev/null 2>&1 &); echo x > a.txt")
		must(t, i.Close())
		must(t, i.Close())
	}
	cycle()
	before := state(t)
	for range 20 {
		cycle()
	}
	if after := state(t); after != before {
		t.Errorf("before: %s\nafter:  %s", before, after)
	}
}

// TestRefusalLeavesNothing: every failure on the way is cleaned up too.
func TestRefusalLeavesNothing(t *testing.T) {
	n := newNative(t)
	fail := func() {
		for _, change := range []func(*Spec){
			func(s *Spec) { s.Lowers = []string{"/nonexistent"} },
			func(s *Spec) { s.Mounts = []Mount{{"/usr/bin", "/opt/a"}, {"/etc/passwd", "/opt/a/x"}} },
			func(s *Spec) { s.Limits.OpenFiles = 1 << 40 },
		} {
			s := testSpec(t)
			change(&s)
			if _, err := n.Prepare(context.Background(), s); err == nil {
				t.Error("accepted")
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
		defer cancel()
		if _, err := n.Prepare(ctx, testSpec(t)); err == nil {
			t.Error("prepared in 3 ms")
		}
	}
	fail()
	before := state(t)
	for range 5 {
		fail()
	}
	time.Sleep(50 * time.Millisecond)
	if after := state(t); after != before {
		t.Errorf("before: %s\nafter:  %s", before, after)
	}
}

// TestLostThreadIsNeverTheFirst: from the first thread, too, the work is done
// on another one; the process keeps its own namespaces.
func TestLostThreadIsNeverTheFirst(t *testing.T) {
	before, err := os.Readlink("/proc/self/ns/uts")
	must(t, err)
	needRoot(t)
	for range 200 {
		must(t, onLostThread(func() error {
			if unix.Gettid() == os.Getpid() {
				return errors.New("this is the first thread")
			}
			return unix.Unshare(unix.CLONE_NEWUTS)
		}))
	}
	tasks, err := os.ReadDir("/proc/self/task")
	must(t, err)
	for _, task := range tasks {
		if now, err := os.Readlink("/proc/self/task/" + task.Name() + "/ns/uts"); err == nil && now != before {
			time.Sleep(100 * time.Millisecond) // its thread may still be ending
			if now, err = os.Readlink("/proc/self/task/" + task.Name() + "/ns/uts"); err == nil && now != before {
				t.Errorf("thread %s is in %s", task.Name(), now)
			}
		}
	}
}

// TestWorkerDiesAtAnyPoint kills a worker at many moments of its preparation
// and work; the next one always gets a working sandbox.
func TestWorkerDiesAtAnyPoint(t *testing.T) {
	needRoot(t)
	lower := workspaceOfWorker(t)
	n, s := newNative(t), testSpec(t)
	path := "/" + testParent + "/" + s.ID
	for ms := range 24 {
		c := helperCommand("work", s, lower)
		must(t, c.Start())
		time.Sleep(time.Duration(ms*2) * time.Millisecond)
		must(t, c.Process.Kill())
		_, _ = c.Process.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		must(t, KillGroup(ctx, path))
		cancel()
		s.Lowers = []string{lower}
		i, err := n.Prepare(context.Background(), s)
		if err != nil {
			t.Fatalf("after %d ms: %v", ms*2, err)
		}
		shell(t, i, "cat lower >/dev/null && echo x >> log")
		must(t, i.Close())
	}
	b, err := os.ReadFile(s.RunDir + "/upper/log")
	if err != nil || len(b) != 24*2 {
		t.Errorf("%q %v", b, err)
	}
}

func TestManySandboxesAtOnce(t *testing.T) {
	n := newNative(t)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			i, err := n.Prepare(context.Background(), testSpec(t))
			if err != nil {
				t.Error(err)
				return
			}
			r, err := i.Exec(context.Background(), ExecRequest{Shell: "sleep 0.2; ls /proc | grep -c '^[0-9]'; cat /proc/self/uid_map"})
			var seen int
			// The hand, the shell, ls and perhaps grep: nobody else's.
			if _, serr := fmt.Sscan(r.Stdout.Text(), &seen); err != nil || serr != nil || seen < 3 || seen > 5 {
				t.Errorf("%q %v", r.Stdout.Text(), err)
			}
			if err := i.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestCgroupVersion2 takes the other way into the control group: the hand
// clones into it. Controllers are version 1's on such a host, so nothing is
// bounded here.
func TestCgroupVersion2(t *testing.T) {
	needRoot(t)
	if _, err := os.Stat("/sys/fs/cgroup/unified/cgroup.procs"); err != nil {
		t.Skip("no version 2 hierarchy beside version 1: there Detect's own choice is tested by all other tests")
	}
	n := newNative(t)
	n.tree = cgroup.V2("/sys/fs/cgroup/unified")
	s := testSpec(t)
	s.Require = slices.DeleteFunc(AllControls(), func(c Control) bool { return c == CgroupLimits })
	i, err := n.Prepare(context.Background(), s)
	must(t, err)
	if g := i.Report().Grade; g == nil || *g != GradeCMinus {
		t.Errorf("grade %v without limits of the group", g)
	}
	shell(t, i, "(setsid sleep 1000 >/dev/null 2>&1 &); cat /proc/self/cgroup")
	if pids, err := i.prep.group.Payload(); err != nil || len(pids) != 1 {
		t.Error(pids, err)
	}
	if k := i.Report().Control(CgroupKill); k.Observed == nil || !*k.Observed {
		t.Errorf("%+v", k)
	}
	must(t, i.Kill(context.Background()))
	must(t, i.Close())
	if i.prep.group.Exists() {
		t.Error("the group is still there")
	}
}
