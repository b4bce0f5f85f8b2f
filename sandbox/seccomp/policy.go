package seccomp

// arch is one architecture: its number in linux/audit.h, the bit that marks
// calls of x32, and the numbers between the tables that no call has.
type arch struct {
	audit             uint32
	x32               uint32
	arm               bool
	gapFirst, gapLast uint32
}

var archs = map[string]arch{
	"amd64": {audit: 0xc000003e, x32: 0x40000000, gapFirst: 337, gapLast: 423},
	"arm64": {audit: 0xc00000b7, arm: true, gapFirst: 295, gapLast: 423},
}

// highest is the last system call that was reviewed for this list:
// file_setattr, of Linux 6.17. Numbers from 424 on are the same everywhere.
const highest = 469

// absent marks a call that an architecture does not have.
const absent = -1

// call is one system call that is not simply allowed.
type call struct {
	name         string
	amd64, arm64 int
	errno        uint32
	rule         []test // nil: refused whatever the arguments
}

func (c call) number(a arch) int {
	if a.arm {
		return c.arm64
	}
	return c.amd64
}

// test judges one argument: with a mask first, then either a list of allowed
// values or one of denied values. when restricts it to calls in which another
// argument has a value.
type test struct {
	arg     int
	mask    uint32
	allowed []uint32
	denied  []uint32
	when    *condition
}

type condition struct {
	arg   int
	value uint32
}

// Values from the kernel's headers.
const (
	namespaces = 0x7e020000 // CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET
	newTime    = 0x00000080 // CLONE_NEWTIME, of unshare only
	afUnix     = 1
	afInet     = 2
	afInet6    = 10
	afNetlink  = 16
	typeMask   = 0xf // SOCK_TYPE_MASK
	sockStream = 1
	sockDgram  = 2
)

func deny(name string, amd64, arm64 int) call { return call{name, amd64, arm64, eperm, nil} }

func judge(name string, amd64, arm64 int, rule ...test) call {
	return call{name, amd64, arm64, eperm, rule}
}

// inet refuses raw sockets and every transport but TCP and UDP.
func inet(family uint32) []test {
	w := &condition{0, family}
	return []test{
		{arg: 1, mask: typeMask, allowed: []uint32{sockStream, sockDgram}, when: w},
		{arg: 2, allowed: []uint32{0, 6, 17}, when: w},
	}
}

// calls is the policy. Each group says what a call would open.
var calls = []call{
	// Its flags lie in memory, where a filter cannot look: programs fall back to clone.
	{"clone3", 435, 435, enosys, nil},
	// New namespaces, in which a process has rights again.
	judge("clone", 56, 220, test{arg: 0, mask: namespaces, allowed: []uint32{0}}),
	judge("unshare", 272, 97, test{arg: 0, mask: namespaces | newTime, allowed: []uint32{0}}),
	deny("setns", 308, 268),
	// Families of sockets that a network namespace does not bound, or that are rarely reviewed code.
	judge("socket", 41, 198, append(append([]test{
		{arg: 0, allowed: []uint32{afUnix, afInet, afInet6, afNetlink}},
		{arg: 2, allowed: []uint32{0}, when: &condition{0, afNetlink}}, // 0: NETLINK_ROUTE
	}, inet(afInet)...), inet(afInet6)...)...),
	judge("socketpair", 53, 199, test{arg: 0, allowed: []uint32{afUnix}}),
	// Keystrokes for the terminal's other readers; other line disciplines; the console.
	judge("ioctl", 16, 29, test{arg: 1, denied: []uint32{0x5412, 0x541c, 0x5423, 0x541d}}), // TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS
	// Only the plain personality, and the question for it.
	judge("personality", 135, 92, test{arg: 0, allowed: []uint32{0, 8, 0x20000, 0x20008, 0xffffffff}}),
	// Other processes' memory and descriptors.
	deny("ptrace", 101, 117), deny("process_vm_readv", 310, 270), deny("process_vm_writev", 311, 271),
	deny("pidfd_getfd", 438, 438), deny("kcmp", 312, 272), deny("process_madvise", 440, 440), deny("process_mrelease", 448, 448),
	deny("move_pages", 279, 239), deny("migrate_pages", 256, 238),
	// Large interfaces of the kernel with a history of faults.
	deny("io_uring_setup", 425, 425), deny("io_uring_enter", 426, 426), deny("io_uring_register", 427, 427),
	deny("userfaultfd", 323, 282), deny("bpf", 321, 280), deny("perf_event_open", 298, 241),
	deny("fanotify_init", 300, 262), deny("fanotify_mark", 301, 263), deny("memfd_secret", 447, 447), deny("lookup_dcookie", 212, 18),
	// Keys are not in a namespace of their own.
	deny("add_key", 248, 217), deny("request_key", 249, 218), deny("keyctl", 250, 219),
	// Mounts, by the old calls and the new.
	deny("mount", 165, 40), deny("umount2", 166, 39), deny("pivot_root", 155, 41), deny("chroot", 161, 51),
	deny("open_tree", 428, 428), deny("move_mount", 429, 429), deny("fsopen", 430, 430), deny("fsconfig", 431, 431),
	deny("fsmount", 432, 432), deny("fspick", 433, 433), deny("mount_setattr", 442, 442), deny("open_tree_attr", 467, 467),
	deny("open_by_handle_at", 304, 265), deny("quotactl", 179, 60), deny("quotactl_fd", 443, 443),
	deny("swapon", 167, 224), deny("swapoff", 168, 225), deny("uselib", 134, absent), deny("sysfs", 139, absent),
	// The machine itself.
	deny("kexec_load", 246, 104), deny("kexec_file_load", 320, 294), deny("reboot", 169, 142),
	deny("init_module", 175, 105), deny("finit_module", 313, 273), deny("delete_module", 176, 106),
	deny("create_module", 174, absent), deny("query_module", 178, absent), deny("get_kernel_syms", 177, absent), deny("nfsservctl", 180, 42),
	deny("iopl", 172, absent), deny("ioperm", 173, absent), deny("_sysctl", 156, absent), deny("acct", 163, 89), deny("syslog", 103, 116),
	deny("settimeofday", 164, 170), deny("clock_settime", 227, 112), deny("clock_adjtime", 305, 266), deny("adjtimex", 159, 171),
	deny("sethostname", 170, 161), deny("setdomainname", 171, 162), deny("vhangup", 153, 58), deny("lsm_set_self_attr", 460, 460),
}
