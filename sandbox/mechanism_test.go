package sandbox

import (
	"context"
	"errors"
	"slices"
	"testing"

	"cairn/sandbox/escape"
)

// mechanism is one control and the attempt that it alone stops, once the
// others that would stop it too are left out.
type mechanism struct {
	control Control
	overlap []Control
	probe   string
}

var mechanisms = []mechanism{
	{UIDRange, nil, "read_private_file"},
	{NetNamespace, nil, "host_tcp"},
	{NetNamespace, []Control{Landlock}, "host_abstract_socket"},
	{IPCNamespace, nil, "host_shared_memory"},
	{UTSNamespace, nil, "host_name"},
	{CgroupNamespace, nil, "group_names"},
	{ReadonlySystem, []Control{Landlock}, "write_declared_mount"},
	{NoNetwork, nil, "has_route"},
	{Rlimits, nil, "large_file"},
	{CgroupLimits, nil, "many_processes"},
	{NoNewPrivs, []Control{Landlock, Seccomp}, "may_gain_privileges"},
	{CapabilitiesDropped, nil, "bounding_set"},
	{Landlock, nil, "landlock_mark"},
	{Landlock, nil, "signal_pid1"},
	{Seccomp, nil, "io_uring"},
	{Seccomp, nil, "vsock"},
	{Seccomp, nil, "add_key"},
	{DiskWatchdog, nil, "full_disk"},
}

// cannotOpen are the controls without which nothing can be shown: the hand
// cannot work without them, or what they close is closed by the kernel for
// want of a capability that no program inside ever has. That Prepare refuses
// without each of them is tested beside this.
var cannotOpen = []Control{UserNamespace, MountNamespace, PIDNamespace, PivotRoot, OverlayWorkspace, CgroupKill}

// TestEachMechanismStopsItsProbe leaves a control out: the worker sees that,
// and what only it stops succeeds. With the control there, and only the
// overlapping ones left out, it is stopped.
func TestEachMechanismStopsItsProbe(t *testing.T) {
	needRoot(t)
	targets := escapeTargets(t)
	for _, m := range mechanisms {
		t.Run(string(m.control)+"/"+m.probe, func(t *testing.T) {
			p, ok := escape.Find(m.probe)
			if !ok {
				t.Fatal("no such probe")
			}
			with, r := weakened(t, p, targets, m.overlap)
			if k := with.Control(m.control); r.Outcome != escape.Closed || k.Observed == nil || !*k.Observed {
				t.Errorf("with the control: %v, observed %+v", r, k)
			}
			without, r := weakened(t, p, targets, append([]Control{m.control}, m.overlap...))
			if k := without.Control(m.control); r.Outcome != escape.Open || k.Observed != nil && *k.Observed {
				t.Errorf("without it: %v, observed %+v", r, k)
			}
			if g := *without.Grade; g == GradeC {
				t.Error("still graded C")
			}
		})
	}
	for _, c := range AllControls() {
		covered := slices.ContainsFunc(mechanisms, func(m mechanism) bool { return m.control == c })
		if covered == slices.Contains(cannotOpen, c) {
			t.Errorf("%s: has a probe of its own: %v", c, covered)
		}
	}
}

// weakened makes one attempt in a sandbox that lacks some controls, as an
// operator who requires nothing gets it.
func weakened(t *testing.T, p escape.Probe, targets *escape.Targets, omit []Control) (*Report, escape.Result) {
	t.Helper()
	o := testOptions(t)
	o.HandPath = omitProgram
	n := NewNative(o)
	defer n.Close()
	n.omit = omit
	s := testSpec(t)
	s.Grade = GradeF
	escapeSpec(&s, targets.Mount)
	i, err := n.Prepare(context.Background(), s)
	must(t, err)
	r := attempt(i, p, targets.Inside())
	report := i.Report()
	must(t, i.Close())
	return report, r
}

// TestOperatorMayLowerTheGrade: refused at C, working and said so below.
func TestOperatorMayLowerTheGrade(t *testing.T) {
	needRoot(t)
	o := testOptions(t)
	o.HandPath = omitProgram
	n := NewNative(o)
	defer n.Close()
	for c, want := range map[Control]Grade{CgroupLimits: GradeCMinus, UTSNamespace: GradeD, Seccomp: GradeF} {
		n.omit = []Control{c}
		for _, asked := range []Grade{GradeC, GradeCMinus, GradeD, GradeF} {
			s := testSpec(t)
			s.Grade = asked
			i, err := n.Prepare(context.Background(), s)
			if !want.AtLeast(asked) {
				var r *RefusedError
				if !errors.As(err, &r) || r.Control != c || r.Fix == "" {
					t.Errorf("%s left out, %s required: %v", c, asked, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s left out, %s required: %v", c, asked, err)
			}
			if got := *i.Report().Grade; got != want {
				t.Errorf("%s left out, %s required: grade %s, want %s", c, asked, got, want)
			}
			must(t, i.Close())
		}
	}
}
