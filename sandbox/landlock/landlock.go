// Package landlock bounds which files a thread and everything it starts can
// open, beside and after the mounts: two layers, one for the hand and one more
// for the programs of the agent. It imports the standard library and
// golang.org/x/sys.
//
// It never weakens itself to what a kernel happens to know: below [MinABI] it
// refuses. What is used of a later ABI is told by [Layer.Scoped].
//
//	ABI read -> ruleset -> rules on open folders -> restrict_self (no_new_privs before)
//
// Interface: Documentation/userspace-api/landlock.rst of the Linux kernel.
package landlock

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MinABI is the oldest interface that is accepted: the first with a right for
// the ioctls of devices, Linux 6.10.
const MinABI = 5

// scopeABI is the first with scopes, Linux 6.12.
const scopeABI = 6

// Rights of a folder.
const (
	read  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	write = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	list  = unix.LANDLOCK_ACCESS_FS_READ_DIR
	exec  = unix.LANDLOCK_ACCESS_FS_EXECUTE
	// Devices are not among what may be made: a device 0:0 is the overlay's own
	// mark for a deleted file, and needs no privilege.
	change = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	devices = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	ioctl   = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	handled = read | write | exec | change | devices | ioctl
	ofFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | write | exec | ioctl
)

// Access is what may be done below a path.
type Access uint64

// The kinds of folders in a sandbox.
const (
	Listed   Access = list                         // names, not content
	Readable Access = read                         // nothing may be changed or run
	System   Access = read | exec                  // read-only programs
	Devices  Access = read | write                 // device files, without their ioctls
	Terminal Access = read | write | ioctl         // pseudo terminals, which are of no use without
	Kernel   Access = read | write                 // /proc
	Own      Access = read | write | exec | change // the agent's own folders
)

// Rule allows an access below a path. A path that is not there needs no rule.
type Rule struct {
	Path   string
	Access Access
}

// ErrUnsupported means that the kernel has no Landlock, or an older one.
var ErrUnsupported = errors.New("landlock is not usable")

// ABI asks the kernel for its version of the interface.
func ABI() (int, error) {
	n, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0, fmt.Errorf("%w: %w (not built into the kernel, or not in its list lsm=)", ErrUnsupported, e)
	}
	return int(n), nil
}

// Layer is one ruleset, ready to be put on threads.
type Layer struct {
	fd     int
	Scoped bool // signals and abstract sockets end at its border
}

// attr is struct landlock_ruleset_attr.
type attr struct{ fs, net, scoped uint64 }

// pathAttr is struct landlock_path_beneath_attr, which is packed.
type pathAttr struct {
	access uint64
	parent int32
}

// Files makes the layer of the hand: every right on files is refused but for
// what the rules allow.
func Files(rules []Rule) (*Layer, error) {
	if err := require(); err != nil {
		return nil, err
	}
	l, err := create(attr{fs: handled})
	if err != nil {
		return nil, err
	}
	return l, l.add(rules)
}

// Programs makes the layer that the agent's programs have beyond the hand's.
// A process in it cannot trace one outside; from ABI 6 on it cannot signal one
// or reach its abstract sockets either.
func Programs(terminals []Rule) (*Layer, error) {
	if err := require(); err != nil {
		return nil, err
	}
	abi, err := ABI()
	if err != nil {
		return nil, err
	}
	a := attr{fs: devices | ioctl}
	if abi >= scopeABI {
		a.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	l, err := create(a)
	if err != nil {
		return nil, err
	}
	l.Scoped = a.scoped != 0
	only := make([]Rule, 0, len(terminals))
	for _, r := range terminals {
		only = append(only, Rule{r.Path, r.Access & ioctl})
	}
	return l, l.add(only)
}

func require() error {
	abi, err := ABI()
	if err != nil {
		return err
	}
	if abi < MinABI {
		return fmt.Errorf("%w: the kernel has ABI %d, want %d", ErrUnsupported, abi, MinABI)
	}
	return nil
}

// create names only as much of the structure as is used, so that a kernel
// which knows less refuses what it does not know.
func create(a attr) (*Layer, error) {
	size := unsafe.Sizeof(a)
	if a.scoped == 0 {
		size = unsafe.Offsetof(a.scoped)
	}
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&a)), size, 0)
	if e != 0 {
		return nil, fmt.Errorf("landlock ruleset: %w", e)
	}
	return &Layer{fd: int(fd)}, nil
}

func (l *Layer) add(rules []Rule) error {
	for _, r := range rules {
		if err := l.addOne(r); err != nil {
			l.Close()
			return fmt.Errorf("landlock rule for %s: %w", r.Path, err)
		}
	}
	return nil
}

func (l *Layer) addOne(r Rule) error {
	fd, err := unix.Open(r.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	access := uint64(r.Access)
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofFiles // the others mean nothing on a file and are refused
	}
	p := pathAttr{access: access, parent: int32(fd)}
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(l.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&p)), 0, 0, 0)
	runtime.KeepAlive(&p)
	if e != 0 {
		return e
	}
	return nil
}

// RestrictProcess puts the layer on all threads, for ever.
func (l *Layer) RestrictProcess() error {
	if _, _, e := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(l.fd), 0, 0); e != 0 {
		return fmt.Errorf("landlock restrict: %w", e)
	}
	return nil
}

// RestrictThread puts the layer on the calling thread, which must be locked,
// and with it on whatever it will start.
func (l *Layer) RestrictThread() error {
	if _, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(l.fd), 0, 0); e != 0 {
		return fmt.Errorf("landlock restrict: %w", e)
	}
	return nil
}

// Close frees the ruleset; layers that were put on threads stay.
func (l *Layer) Close() error { return unix.Close(l.fd) }
