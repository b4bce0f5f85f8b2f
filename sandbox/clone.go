package sandbox

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"cairn/sandbox/layer"
)

const rangeSize = layer.RangeSize

// namespaceFlags is what each namespace control asks of the clone.
var namespaceFlags = map[Control]uintptr{
	UserNamespace:  syscall.CLONE_NEWUSER,
	MountNamespace: syscall.CLONE_NEWNS,
	PIDNamespace:   syscall.CLONE_NEWPID,
	NetNamespace:   syscall.CLONE_NEWNET,
	IPCNamespace:   syscall.CLONE_NEWIPC,
	UTSNamespace:   syscall.CLONE_NEWUTS,
}

// namespaceFiles is where each shows in /proc/PID/ns.
var namespaceFiles = map[Control]string{
	UserNamespace:  "user",
	MountNamespace: "mnt",
	PIDNamespace:   "pid",
	NetNamespace:   "net",
	IPCNamespace:   "ipc",
	UTSNamespace:   "uts",
	// Not made by the clone: the thread that forks leaves the worker's later.
	CgroupNamespace: "cgroup",
}

// lastCap is the highest capability of this kernel.
func lastCap() uintptr {
	b, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 8)
	if err != nil {
		return 0
	}
	return uintptr(n)
}
