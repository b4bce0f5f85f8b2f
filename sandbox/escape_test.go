package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cairn/sandbox/escape"
)

var update = flag.Bool("update", false, "write the expectation table and docs/reference/escape.md from this run")

const (
	expectations = "escape/testdata/native.txt"
	escapePage   = "../docs/reference/escape.md"
	probeAt      = "/opt/escape/probe"
)

// escapeSpec is the sandbox in which probes run.
func escapeSpec(s *Spec, mount string) {
	s.Mounts = []Mount{{probeProgram, probeAt}, {mount, mount}}
	s.Limits.Pids, s.Limits.Memory, s.Limits.FileSize = escape.Pids, escape.Memory, escape.FileSize
	s.Limits.Disk, s.Limits.TmpSize = escape.Disk, escape.TmpSize
}

// attempt makes one attempt inside.
func attempt(i *Instance, p escape.Probe, env map[string]string) escape.Result {
	r, err := i.Exec(context.Background(), ExecRequest{Argv: []string{probeAt, p.Name}, Env: env, Timeout: escape.Timeout})
	var over *OverLimitError
	switch {
	case errors.As(err, &over):
		return escape.Result{Outcome: escape.Closed, Reason: "watchdog"}
	case err != nil:
		return escape.Result{Outcome: escape.Broken, Reason: err.Error()}
	case r.TimedOut:
		return escape.Result{Outcome: escape.Broken, Reason: "no end in time"}
	}
	return escape.Read(r.Stdout.Text(), r.Signal)
}

// outside makes the same attempt on the host, as root: it must succeed.
func outside(t *testing.T, p escape.Probe, targets *escape.Targets) escape.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), escape.Timeout)
	defer cancel()
	c := exec.CommandContext(ctx, probeProgram, p.Name)
	c.Env = targets.Outside()
	left, err := os.Open(os.DevNull)
	must(t, err)
	defer left.Close()
	c.ExtraFiles = []*os.File{left}
	out, err := c.Output()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) && e.Sys().(syscall.WaitStatus).Signaled() {
		return escape.Read("", int(e.Sys().(syscall.WaitStatus).Signal()))
	}
	return escape.Read(string(out), 0)
}

func escapeTargets(t *testing.T) *escape.Targets {
	t.Helper()
	dir, err := os.MkdirTemp("", "cairn-escape-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	targets, err := escape.NewTargets(dir, testParent)
	must(t, err)
	t.Cleanup(targets.Close)
	return targets
}

// inside runs every probe; those that may end the sandbox have one of their
// own.
func inside(prepare func(alone bool) (*Instance, error), env map[string]string) (map[string]escape.Result, error) {
	shared, err := prepare(false)
	if err != nil {
		return nil, err
	}
	defer shared.Close()
	results := map[string]escape.Result{}
	for _, p := range escape.Probes() {
		i := shared
		if p.Alone {
			if i, err = prepare(true); err != nil {
				return nil, err
			}
		}
		results[p.Name] = attempt(i, p, env)
		if p.Alone {
			if err := i.Close(); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

// escapeHelper runs the suite as the user that this process is, and prints the
// results.
func escapeHelper(n *Native) int {
	var env map[string]string
	if err := json.Unmarshal([]byte(os.Getenv("HELPER_ENV")), &env); err != nil {
		fmt.Println(err)
		return 1
	}
	probeProgram = os.Getenv("HELPER_PROBE")
	number := 0
	results, err := inside(func(bool) (*Instance, error) {
		number++
		s := Spec{ID: fmt.Sprintf("%s-%d", os.Getenv("HELPER_ID"), number), RunDir: fmt.Sprintf("%s-%d", os.Getenv("HELPER_RUN"), number), Grade: GradeCMinus}
		escapeSpec(&s, env["PROBE_MOUNT"])
		return n.Prepare(context.Background(), s)
	}, env)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(results)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// asNobody runs the suite in sandboxes of a user without privileges.
func asNobody(t *testing.T, targets *escape.Targets) map[string]escape.Result {
	t.Helper()
	dir, err := os.MkdirTemp("", "cairn-nobody-")
	must(t, err)
	defer os.RemoveAll(dir)
	self, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(dir+"/test", self, 0o755))
	must(t, os.Chown(dir, 65534, 65534))
	env, err := json.Marshal(targets.Inside())
	must(t, err)
	s := testSpec(t)
	s.RunDir = filepath.Join(dir, "run")
	c := helperCommand("escape", s, "")
	c.Path, c.Args, c.Dir = dir+"/test", []string{"test"}, "/"
	c.Env = append(c.Env, "HELPER_SLOTS="+dir+"/slots", "TMPDIR="+dir, "HELPER_ENV="+string(env), "HELPER_PROBE="+probeProgram)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.Output()
	var results map[string]escape.Result
	if err = errors.Join(err, json.Unmarshal(out, &results)); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return results
}

// TestEscape makes every attempt outside, in a sandbox of grade C and in one
// of grade C-, and compares what they came to with the committed table.
func TestEscape(t *testing.T) {
	needRoot(t)
	targets := escapeTargets(t)
	for _, p := range escape.Probes() {
		begin := time.Now()
		if r := outside(t, p, targets); r.Outcome != escape.Open {
			t.Errorf("%s: the attempt outside, which must succeed: %v", p.Name, r)
		}
		if took := time.Since(begin); took > escape.Timeout/2 {
			t.Logf("%s took %v outside", p.Name, took)
		}
	}
	n := newNative(t)
	c, err := inside(func(bool) (*Instance, error) {
		s := testSpec(t)
		escapeSpec(&s, targets.Mount)
		return n.Prepare(context.Background(), s)
	}, targets.Inside())
	must(t, err)
	minus := asNobody(t, targets)
	var table, page bytes.Buffer
	writePage(&page, c, minus)
	for _, p := range escape.Probes() {
		fmt.Fprintf(&table, "%-26s %s | %s\n", p.Name, text(c[p.Name]), text(minus[p.Name]))
		if (c[p.Name].Outcome == escape.Open) != p.Allowed {
			t.Errorf("%s: %v in a sandbox of grade C", p.Name, c[p.Name])
		}
	}
	if len(escape.Probes()) < 60 {
		t.Errorf("%d probes, at least 60 are promised", len(escape.Probes()))
	}
	golden(t, expectations, table.Bytes())
	golden(t, escapePage, page.Bytes())
}

func text(r escape.Result) string { return strings.TrimSpace(r.Outcome + " " + r.Reason) }

func golden(t *testing.T, name string, want []byte) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(name, want, 0o644))
	}
	got, err := os.ReadFile(name)
	must(t, err)
	if bytes.Equal(got, want) {
		return
	}
	old, now := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(old), len(now)) {
		if i >= len(old) || i >= len(now) || old[i] != now[i] {
			t.Errorf("%s line %d differs from this run; run the test with -update and look at the difference:\n%s\n%s", name, i+1, line(old, i), line(now, i))
		}
	}
}

func line(lines []string, i int) string {
	if i >= len(lines) {
		return "(none)"
	}
	return lines[i]
}

func writePage(w *bytes.Buffer, c, minus map[string]escape.Result) {
	fmt.Fprintf(w, `# The escape suite

Written by the test of the sandbox from its run; do not edit. %d attempts to leave a sandbox, or to reach what it must
not reach. Each is made by a process of its own with a time limit, outside first, where it must succeed: an attempt
that fails everywhere proves nothing. Grade C is a worker run by root, grade C- one run by a user without privileges;
see [the sandbox](../operations/sandbox.md). The reasons are those of Linux 6.18.

`+"`open` stands where the sandbox lets it happen: on purpose where it says so, else because that grade has no means.\n", len(escape.Probes()))
	group := ""
	for _, p := range escape.Probes() {
		if p.Group != group {
			group = p.Group
			fmt.Fprintf(w, "\n## %s\n\n| probe | tries | grade C | grade C- |\n| --- | --- | --- | --- |\n", strings.ToUpper(group[:1])+group[1:])
		}
		tries := p.Tries
		if p.Allowed {
			tries += " (on purpose)"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", p.Name, tries, text(c[p.Name]), text(minus[p.Name]))
	}
}
