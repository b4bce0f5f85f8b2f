package sandbox

import "errors"

// Control is the name of one mechanism that keeps the agent inside.
type Control string

// The controls of the native backend.
const (
	UserNamespace       Control = "user_namespace"
	MountNamespace      Control = "mount_namespace"
	PIDNamespace        Control = "pid_namespace"
	NetNamespace        Control = "net_namespace"
	IPCNamespace        Control = "ipc_namespace"
	UTSNamespace        Control = "uts_namespace"
	PivotRoot           Control = "pivot_root"
	ReadonlySystem      Control = "readonly_system"
	OverlayWorkspace    Control = "overlay_workspace"
	NoNetwork           Control = "no_network"
	Rlimits             Control = "rlimits"
	CgroupKill          Control = "cgroup_kill"
	NoNewPrivs          Control = "no_new_privs"
	CapabilitiesDropped Control = "capabilities_dropped"
)

// AllControls is every control, in the order of reports. A Spec that
// requires nothing by name requires all of these.
func AllControls() []Control {
	return []Control{
		UserNamespace, MountNamespace, PIDNamespace, NetNamespace, IPCNamespace, UTSNamespace,
		PivotRoot, ReadonlySystem, OverlayWorkspace, NoNetwork, Rlimits, CgroupKill,
		NoNewPrivs, CapabilitiesDropped,
	}
}

// fixes says what an operator can do about a missing control.
var fixes = map[Control]string{
	UserNamespace:       "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, AppArmor) or run the worker as root",
	MountNamespace:      "allow mount namespaces (seccomp profile of the surrounding container)",
	PIDNamespace:        "run outside of a container that masks files in /proc, or mount a full /proc",
	NetNamespace:        "allow network namespaces (sysctl user.max_net_namespaces)",
	IPCNamespace:        "allow IPC namespaces (sysctl user.max_ipc_namespaces)",
	UTSNamespace:        "allow UTS namespaces (sysctl user.max_uts_namespaces)",
	PivotRoot:           "run outside of a chroot; pivot_root needs a mounted root",
	ReadonlySystem:      "check that /usr and the declared mounts exist and can be bind-mounted",
	OverlayWorkspace:    "keep the run folder and the lowers on ext4, xfs, btrfs or tmpfs with id-mapped mounts and overlayfs in the kernel (Linux 5.19 or later)",
	NoNetwork:           "allow network namespaces",
	Rlimits:             "raise the worker's own hard limits (ulimit -H) to at least those of the sandbox",
	CgroupKill:          "run the worker as root with the cgroup controllers pids, memory and freezer (version 1) or pids and memory (version 2)",
	NoNewPrivs:          "use Linux 3.5 or later",
	CapabilitiesDropped: "use a kernel with user namespaces",
}

// ControlReport is what is known about one control. Nil is unknown; Reason
// says why something is false or unknown.
type ControlReport struct {
	Name      Control `json:"name"`
	Requested bool    `json:"requested"`
	Installed *bool   `json:"installed"` // as the worker did it or the hand says it did
	Observed  *bool   `json:"observed"`  // as the worker read it from the kernel
	Reason    string  `json:"reason,omitempty"`
}

// Phase is one part of a preparation.
type Phase struct {
	Name         string `json:"name"`
	Microseconds int64  `json:"microseconds"`
}

// Report is what is known about a prepared, or refused, sandbox.
type Report struct {
	Backend  string          `json:"backend"`
	Kernel   string          `json:"kernel"`   // release
	Identity string          `json:"identity"` // uid_range or single_uid
	Grade    *string         `json:"grade"`    // null: not judged yet
	Controls []ControlReport `json:"controls"`
	Missing  []Control       `json:"missing"` // requested and not there
	Phases   []Phase         `json:"phases"`
	Egress   EgressReport    `json:"egress"`
}

// Control finds one control's part.
func (r *Report) Control(c Control) *ControlReport {
	for i := range r.Controls {
		if r.Controls[i].Name == c {
			return &r.Controls[i]
		}
	}
	return nil
}

func (r *Report) installed(c Control, ok bool, reason string) {
	k := r.Control(c)
	k.Installed = &ok
	if !ok {
		k.Reason = reason
	}
}

func (r *Report) observed(c Control, err error) {
	k := r.Control(c)
	if errors.Is(err, errNotObservable) {
		k.Observed, k.Reason = nil, err.Error()
		return
	}
	ok := err == nil
	k.Observed = &ok
	if !ok {
		k.Reason = err.Error()
	}
}

// judge fills Missing and gives the first refusal. Observed and unknown
// counts as present only when it was installed.
func (r *Report) judge() error {
	r.Missing = []Control{}
	var first *ControlReport
	for i := range r.Controls {
		k := &r.Controls[i]
		ok := k.Installed != nil && *k.Installed && (k.Observed == nil || *k.Observed)
		if ok || !k.Requested {
			continue
		}
		r.Missing = append(r.Missing, k.Name)
		if first == nil {
			first = k
		}
	}
	if first == nil {
		return nil
	}
	reason := first.Reason
	if reason == "" {
		reason = "was not installed"
	}
	return refuse(first.Name, reason, nil)
}
