package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"cairn/sandbox/cgroup"
	"cairn/sandbox/egress"
	"cairn/sandbox/landlock"
	"cairn/sandbox/layer"
	"cairn/sandbox/ns"
	"cairn/sandbox/seccomp"
)

const (
	setupTimeout   = 15 * time.Second
	cleanupTimeout = 15 * time.Second
)

// preparation is a sandbox that is not there yet. What it holds is freed by
// undo, last first, when a step fails, and by Instance.Close later.
type preparation struct {
	native *Native
	spec   Spec
	report *Report
	exe    string

	slot   *slot
	store  int // first id under which uppers are stored
	tree   *cgroup.Tree
	group  *cgroup.Group // nil: this sandbox has none
	plan   ns.Plan
	files  []*os.File // inherited by the hand, from descriptor 4 on
	temp   []*os.File // closed once the hand runs
	opened []*os.File // what a root that is made now will show
	undo   []func() error
	hand   *process
	probe  error // why the canary's attempt to read would prove nothing

	proxy   *egress.Proxy // nil: no way out
	served  []served
	passage *os.File // over which the listeners come
}

// Prepare makes a sandbox and proves its controls before it returns. A
// *RefusedError names a required control that is missing. With an existing
// upper in RunDir the workspace has the files it had.
func (n *Native) Prepare(ctx context.Context, spec Spec) (*Instance, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	p := &preparation{native: n, spec: spec, report: newReport(n, spec)}
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	err := p.run(ctx)
	for _, f := range p.temp {
		f.Close()
	}
	if err == nil {
		return newInstance(p), nil
	}
	var r *RefusedError
	if errors.As(err, &r) {
		r.Report = p.report
	}
	if e := p.cleanup(); e != nil {
		err = fmt.Errorf("%w (and cleaning up: %w)", err, e)
	}
	return nil, err
}

func newReport(n *Native, spec Spec) *Report {
	r := &Report{Backend: n.Name(), Kernel: kernel(), Identity: "single_uid", Required: spec.Grade, Missing: []Control{}, Phases: []Phase{}, Egress: spec.Network.report()}
	if n.ranged() {
		r.Identity = "uid_range"
	}
	if abi, err := landlock.ABI(); err == nil {
		r.Landlock = &abi
	}
	for _, c := range AllControls() {
		r.Controls = append(r.Controls, ControlReport{Name: c, Requested: slices.Contains(spec.Require, c)})
	}
	return r
}

func (p *preparation) run(ctx context.Context) error {
	phases := []struct {
		name string
		do   func(context.Context) error
	}{
		{"lock", p.lock},
		{"cgroup", p.makeGroup},
		{"network", p.openNetwork},
		{"mounts", p.makeMounts},
		{"clone", p.startHand},
		{"setup", p.setup},
		{"listeners", p.takeListeners},
		{"observe", p.observe},
		{"disk", p.measureDisk},
	}
	for _, f := range phases {
		begin := time.Now()
		err := f.do(ctx)
		p.report.Phases = append(p.report.Phases, Phase{f.name, time.Since(begin).Microseconds()})
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return p.report.judge()
}

// measureDisk looks once as the watchdog will all the time.
func (p *preparation) measureDisk(ctx context.Context) error {
	if p.native.omits(DiskWatchdog) {
		p.report.installed(DiskWatchdog, false, "left out by a test")
		return nil
	}
	if err := checkVolume(ctx, p.spec); err != nil {
		return err
	}
	p.report.installed(DiskWatchdog, true, "")
	p.report.observed(DiskWatchdog, nil)
	return nil
}

// cleanup undoes everything, last first.
func (p *preparation) cleanup() error {
	var all error
	for i := len(p.undo) - 1; i >= 0; i-- {
		all = errors.Join(all, p.undo[i]())
	}
	p.undo = nil
	return all
}

func (p *preparation) onUndo(f func() error) { p.undo = append(p.undo, f) }

func (p *preparation) lock(ctx context.Context) error {
	exe, err := p.native.program()
	if err != nil {
		return err
	}
	p.exe = exe
	f, err := lockRun(ctx, p.spec.RunDir)
	if err != nil {
		return err
	}
	p.onUndo(f.Close)
	return nil
}

// makeGroup makes the control group, then takes a slot in its name. Without
// a group the sandbox still ends with its process namespace; a Spec that
// requires cgroup_kill is refused.
func (p *preparation) makeGroup(ctx context.Context) error {
	err := p.createGroup(ctx)
	if errors.Is(err, ErrBusy) {
		return err
	}
	if err != nil {
		p.group = nil
		for _, c := range []Control{CgroupKill, CgroupLimits} {
			p.report.installed(c, false, err.Error())
			if p.report.Control(c).Requested {
				return refuseBy(c, err)
			}
		}
	} else {
		p.report.installed(CgroupKill, true, "")
		p.report.installed(CgroupLimits, true, "")
	}
	return p.takeRange()
}

// takeRange takes a uid range, where there can be one.
func (p *preparation) takeRange() error {
	if !p.native.ranged() {
		const reason = "only root can map a range of ids"
		p.report.installed(UIDRange, false, reason)
		if p.report.Control(UIDRange).Requested {
			return refuse(UIDRange, reason, nil)
		}
		return nil
	}
	r, err := findRanges(p.native.options)
	if err != nil {
		return refuseBy(UserNamespace, err)
	}
	path := ""
	if p.group != nil {
		path = p.group.Path
	}
	if p.slot, err = r.take(p.tree, path); err != nil {
		return err
	}
	p.onUndo(p.slot.release)
	p.store = r.base
	p.report.installed(UIDRange, true, "")
	return p.ownUpper()
}

func (p *preparation) createGroup(ctx context.Context) error {
	if p.native.omits(CgroupKill) {
		return errors.New("left out by a test")
	}
	tree, g, err := p.native.groupOf(p.spec.ID)
	if err != nil {
		return err
	}
	p.tree = tree
	if g.Exists() { // left by a dead worker: the run folder is ours now
		empty, err := g.Empty()
		if err != nil {
			return err
		}
		if !empty {
			return fmt.Errorf("cgroup %s still has processes, call KillGroup first: %w", g.Path, ErrBusy)
		}
		if err := g.Remove(ctx); err != nil {
			return err
		}
	}
	limits := cgroup.Limits{Memory: p.spec.Limits.Memory, Pids: p.spec.Limits.Pids}
	if p.native.omits(CgroupLimits) {
		limits = cgroup.Limits{}
	}
	if err := g.Create(limits); err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		return errors.Join(err, g.Remove(ctx))
	}
	p.group = g
	p.onUndo(p.endGroup)
	return nil
}

func (p *preparation) endGroup() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	if err := p.group.Kill(ctx); err != nil {
		return err
	}
	return p.group.Remove(ctx)
}

// ownUpper gives upper and work to the ids under which uppers are stored.
func (p *preparation) ownUpper() error {
	id := p.store + agentID
	for _, name := range []string{"upper", "work"} {
		dir := filepath.Join(p.spec.RunDir, name)
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			err = os.Chown(dir, id, id)
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return refuseBy(OverlayWorkspace, err)
		}
		uid, _, err := layer.Owner(dir)
		if err != nil {
			return refuseBy(OverlayWorkspace, err)
		}
		if uid != id {
			return refuse(OverlayWorkspace, fmt.Sprintf("%s belongs to uid %d, not %d: it was made under another uid base or by another user", dir, uid, id), nil)
		}
	}
	return nil
}

// makeMounts makes every tree the hand will attach. With a uid range the
// worker makes them, id-mapped; without, the hand opens the paths itself.
func (p *preparation) makeMounts(ctx context.Context) error {
	l := p.spec.Limits
	p.plan = ns.Plan{
		Root: ns.Source{FD: -1}, Range: p.native.ranged(), Agent: agentID, Hostname: hostname,
		TmpSize: l.TmpSize, HomeSize: l.HomeSize, ShmSize: l.ShmSize,
		FileSize: l.FileSize, Files: l.OpenFiles, Cgroup: -1,
		Passage: p.plan.Passage, Ports: p.plan.Ports, Authority: p.plan.Authority,
	}
	for _, c := range p.native.omit {
		p.plan.Omit = append(p.plan.Omit, string(c))
	}
	for _, c := range optional {
		if !p.report.Control(c).Requested {
			p.plan.Optional = append(p.plan.Optional, string(c))
		}
	}
	if err := p.makeFilter(); err != nil {
		return refuseBy(Seccomp, err)
	}
	if p.group == nil {
		p.plan.Procs = l.Pids
	}
	if err := p.enterGroup(); err != nil {
		return refuseBy(CgroupKill, err)
	}
	if p.native.ranged() {
		return p.trees()
	}
	return p.paths()
}

// optional are the controls without which a sandbox still works, for an
// operator who does not require them.
var optional = []Control{CgroupNamespace, Rlimits, Landlock, Seccomp}

// makeFilter assembles the system call filter, and names the policy.
func (p *preparation) makeFilter() error {
	f, err := seccomp.New(runtime.GOARCH, seccomp.Options{Clone3: p.group != nil && p.tree.Version() == 2})
	if err != nil {
		return err
	}
	p.plan.Filter = f.Bytes()
	p.report.Filter.Requested = seccomp.Hash(p.plan.Filter)
	p.report.Policy, err = policyHash(p.spec, p.report.Filter.Requested)
	return err
}

// policyHash is one name for everything that bounds a sandbox and does not
// differ from run to run: two sandboxes with one hash were asked for alike.
func policyHash(s Spec, filter string) (string, error) {
	targets := []string{}
	for _, m := range s.Mounts {
		targets = append(targets, m.Target)
	}
	b, err := json.Marshal(struct {
		Version int
		Limits  Limits
		Grade   Grade
		Require []Control
		Mounts  []string
		Network EgressReport
		Filter  string
	}{2, s.Limits, s.Grade, s.Require, targets, s.Network.report(), filter})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

func (p *preparation) enterGroup() error {
	if p.group == nil {
		return nil
	}
	owner := os.Geteuid()
	if p.slot != nil {
		owner = p.slot.base + agentID
	}
	tasks, folder, err := p.group.Entrance(owner)
	for _, t := range tasks {
		p.plan.Tasks = append(p.plan.Tasks, p.inherit(t))
	}
	if folder != nil {
		p.plan.Cgroup = p.inherit(folder)
	}
	return err
}

// inherit gives f to the hand and says under which number.
func (p *preparation) inherit(f *os.File) int64 {
	p.temp = append(p.temp, f)
	p.files = append(p.files, f)
	return int64(firstInherited + len(p.files) - 1)
}

func (p *preparation) paths() error {
	at := func(path string) ns.Source { return ns.Source{FD: -1, Path: path} }
	p.plan.System, p.plan.Run = at("/usr"), at(p.spec.RunDir)
	p.plan.Upper, p.plan.Work = at("upper"), at("work")
	for _, name := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(p.spec.RunDir, name), 0o755); err != nil && !errors.Is(err, syscall.EEXIST) {
			return refuseBy(OverlayWorkspace, err)
		}
	}
	for _, l := range p.spec.Lowers {
		p.plan.Lowers = append(p.plan.Lowers, at(l))
	}
	for _, m := range p.spec.Mounts {
		p.plan.Mounts = append(p.plan.Mounts, ns.Bind{Source: at(m.Source), Target: m.Target})
	}
	return nil
}
