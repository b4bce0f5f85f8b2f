package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestMissingControlIsRefused leaves out one control after the other, with a
// hand built for it, and expects Prepare to notice and name it.
func TestMissingControlIsRefused(t *testing.T) {
	needRoot(t)
	// Here the hand claims what it did not do.
	hidden := map[Control]bool{
		UTSNamespace: true, NetNamespace: true, IPCNamespace: true, NoNetwork: true, PivotRoot: true, ReadonlySystem: true, OverlayWorkspace: true, Rlimits: true, NoNewPrivs: true, CapabilitiesDropped: true,
		CgroupNamespace: true, CgroupLimits: true, Landlock: true, Seccomp: true,
	}
	for _, c := range AllControls() {
		t.Run(string(c), func(t *testing.T) {
			o := testOptions(t)
			o.HandPath = omitProgram
			n := NewNative(o)
			n.omit = []Control{c}
			defer n.Close()
			s := testSpec(t)
			if c == NoNewPrivs { // these two cannot be installed without it
				s.Require = slices.DeleteFunc(AllControls(), func(c Control) bool { return c == Landlock || c == Seccomp })
			}
			i, err := n.Prepare(context.Background(), s)
			if err == nil {
				i.Close()
			}
			var r *RefusedError
			if !errors.As(err, &r) || r.Control != c || r.Fix == "" || r.Report == nil {
				t.Fatalf("got %v", err)
			}
			k := r.Report.Control(c)
			claimed := k.Installed != nil && *k.Installed
			if hidden[c] && (!claimed || k.Observed == nil || *k.Observed) {
				t.Errorf("only the observation should have told: %+v", k)
			}
			t.Log(err)
		})
	}
}

func TestReleaseHandRefusesToOmit(t *testing.T) {
	n := newNative(t)
	n.omit = []Control{NoNewPrivs}
	_, err := n.Prepare(context.Background(), testSpec(t))
	var r *RefusedError
	if !errors.As(err, &r) || !strings.Contains(err.Error(), "this build cannot") {
		t.Errorf("got %v", err)
	}
}

func TestControlThatIsNotRequiredIsReported(t *testing.T) {
	needRoot(t)
	o := testOptions(t)
	o.HandPath = omitProgram
	n := NewNative(o)
	defer n.Close()
	n.omit = []Control{NoNewPrivs}
	s := testSpec(t)
	for _, c := range AllControls() {
		if c != NoNewPrivs && c != Landlock && c != Seccomp {
			s.Require = append(s.Require, c)
		}
	}
	i, err := n.Prepare(context.Background(), s)
	must(t, err)
	defer i.Close()
	k := i.Report().Control(NoNewPrivs)
	if k.Requested || k.Observed == nil || *k.Observed || k.Reason == "" {
		t.Errorf("%+v", k)
	}
}

func TestMissingHandNamesTheFix(t *testing.T) {
	needRoot(t)
	n := NewNative(Options{Parent: testParent})
	i, err := n.Prepare(context.Background(), testSpec(t))
	if err != nil && !strings.Contains(err.Error(), "make build") {
		t.Error(err)
	}
	if err == nil { // the hand was built: what is left open would outlast the test as an empty control group
		must(t, i.Close())
	}
	n = NewNative(Options{HandPath: "/nonexistent"})
	if _, err := n.Prepare(context.Background(), testSpec(t)); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Error(err)
	}
}

// TestUnprivilegedUser runs as nobody, who has neither uid ranges nor control
// groups: refused by name with everything required, working without.
func TestUnprivilegedUser(t *testing.T) {
	needRoot(t)
	dir, err := os.MkdirTemp("", "cairn-nobody-")
	must(t, err)
	defer os.RemoveAll(dir)
	self, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(dir+"/test", self, 0o755))
	must(t, os.MkdirAll(dir+"/lower", 0o755))
	must(t, os.WriteFile(dir+"/lower/lower", []byte("mine\n"), 0o600))
	for _, p := range []string{dir, dir + "/lower", dir + "/lower/lower"} {
		must(t, os.Chown(p, 65534, 65534))
	}
	before := fingerprint(t, dir+"/lower")
	for mode, want := range map[string]string{
		"required": "refused cgroup_kill fix: run the worker as root",
		"single":   `single "1000\nmine\nmine\nmore\nagent\nlo\nCapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1\n" <nil> single_uid` + "\ngrade C-\n",
	} {
		s := testSpec(t)
		s.RunDir = filepath.Join(dir, "run-"+mode)
		c := helperCommand(mode, s, dir+"/lower")
		c.Path, c.Args = dir+"/test", []string{"test"}
		c.Env = append(c.Env, "HELPER_SLOTS="+dir+"/slots", "TMPDIR="+dir)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		c.Dir = "/"
		out, err := c.Output()
		if err != nil || !strings.HasPrefix(string(out), want) || strings.Count(string(out), "unobserved") != map[string]int{"single": 3}[mode] {
			t.Errorf("%s: %s %v", mode, out, err)
		}
		if mode == "single" && !strings.HasSuffix(string(out), "closed\n") {
			t.Errorf("%s", out)
		}
	}
	if fingerprint(t, dir+"/lower") != before {
		t.Error("the lower changed")
	}
	if left, _ := exec.Command("find", "/proc", "-maxdepth", "1", "-user", "65534", "-name", "[0-9]*").Output(); len(left) > 0 {
		t.Errorf("processes left: %s", left)
	}
}

func TestProbe(t *testing.T) {
	n := newNative(t)
	c := n.Probe(context.Background())
	for _, r := range c.Results {
		if r.OK == nil || !*r.OK {
			t.Errorf("%+v", r)
		}
	}
	if c.BootID == "" || !c.Has("uid_range") || !c.Has("cgroup") || !c.Has("idmapped_mount") {
		t.Errorf("%+v", c)
	}
}
