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
	CgroupNamespace     Control = "cgroup_namespace"
	UIDRange            Control = "uid_range"
	CgroupLimits        Control = "cgroup_limits"
	Landlock            Control = "landlock"
	Seccomp             Control = "seccomp"
	DiskWatchdog        Control = "disk_watchdog"
)

// AllControls is every control, in the order of reports. A Spec that
// requires nothing by name requires all of these.
func AllControls() []Control {
	return []Control{
		UserNamespace, UIDRange, MountNamespace, PIDNamespace, NetNamespace, IPCNamespace, UTSNamespace, CgroupNamespace,
		PivotRoot, ReadonlySystem, OverlayWorkspace, NoNetwork, Rlimits, CgroupKill, CgroupLimits,
		NoNewPrivs, CapabilitiesDropped, Landlock, Seccomp, DiskWatchdog,
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
	CgroupNamespace:     "allow cgroup namespaces (sysctl user.max_cgroup_namespaces)",
	UIDRange:            "run the worker as root, or accept grade C-",
	CgroupLimits:        "run the worker as root with the cgroup controllers pids and memory, or accept grade C-",
	Landlock:            "use Linux 6.10 or later with landlock built in and in its list of security modules (boot parameter lsm=)",
	DiskWatchdog:        "free space on the volume of the data folder, or keep the data folder on another",
	Seccomp:             "use a kernel with seccomp filters, on amd64 or arm64, and a surrounding container that lets them be installed",
}

// Fix says what an operator can do when the control is missing.
func (c Control) Fix() string { return fixes[c] }

// ControlReport is what is known about one control. Nil is unknown; Reason
// says why something is false or unknown.
type ControlReport struct {
	Name      Control `json:"name"`
	Requested bool    `json:"requested"`
	Installed *bool   `json:"installed"` // as the worker did it or the hand says it did
	Reported  *bool   `json:"reported"`  // as the hand says; null: not the hand's to install
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
	Grade    *Grade          `json:"grade"`    // of what was observed; null: refused before it could be
	Required Grade           `json:"required"` // the lowest grade that is accepted
	Controls []ControlReport `json:"controls"`
	Missing  []Control       `json:"missing"` // requested and not there
	Phases   []Phase         `json:"phases"`
	Egress   EgressReport    `json:"egress"`
	Policy   string          `json:"policy_hash"`
	Filter   FilterReport    `json:"filter"`
	Landlock *int            `json:"landlock_abi"` // null: the kernel has none
}

// FilterReport is the system call filter: the SHA-256 of the program that was
// asked for, and of the one that the kernel gave back for the canary.
type FilterReport struct {
	Requested string  `json:"requested"`
	Observed  *string `json:"observed"` // null: see reason
	Reason    string  `json:"reason,omitempty"`
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

func (r *Report) reported(c Control, ok bool) { r.Control(c).Reported = &ok }

func (r *Report) observed(c Control, err error) {
	k := r.Control(c)
	if errors.Is(err, errNotObservable) {
		k.Observed, k.Reason = nil, err.Error()
		return
	}
	ok := err == nil
	k.Observed = &ok
	if !ok && (k.Installed == nil || *k.Installed) { // else the reason says already why it was not
		k.Reason = err.Error()
	}
}

// judge fills Grade and Missing and gives the first refusal.
func (r *Report) judge() error {
	g := r.grade()
	r.Grade, r.Missing = &g, []Control{}
	var first *ControlReport
	for i := range r.Controls {
		k := &r.Controls[i]
		if !k.Requested || k.Installed != nil && *k.Installed && r.seen(k.Name, r.Required) {
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
