package ns

// Names of the controls that the hand installs. They are the same words as
// the constants of package sandbox, which this package may not import.
const (
	userNS      = "user_namespace"
	mountNS     = "mount_namespace"
	pidNS       = "pid_namespace"
	netNS       = "net_namespace"
	ipcNS       = "ipc_namespace"
	utsNS       = "uts_namespace"
	pivotRoot   = "pivot_root"
	readOnly    = "readonly_system"
	overlay     = "overlay_workspace"
	noNetwork   = "no_network"
	rlimits     = "rlimits"
	cgroupKill  = "cgroup_kill"
	cgroupNS    = "cgroup_namespace"
	landlocked  = "landlock"
	filtered    = "seccomp"
	noNewPrivs  = "no_new_privs"
	dropCaps    = "capabilities_dropped"
	homeDir     = "/home/agent"
	workspace   = "/workspace"
	stage       = "/tmp" // where the new root is built, in the hand's own mount namespace
	runStage    = "/run"
	rootOptions = "mode=0755,size=16m,nr_inodes=16384"
)

// StepError says which control a failed step belongs to.
type StepError struct {
	Control string
	Err     error
}

func (e *StepError) Error() string { return e.Control + ": " + e.Err.Error() }
func (e *StepError) Unwrap() error { return e.Err }
