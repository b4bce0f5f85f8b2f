// Package escape is a suite of attempts to leave a sandbox, or to reach what a
// sandbox must not reach. It imports the standard library and
// golang.org/x/sys, and knows nothing of how the sandbox is made.
//
// A probe is one attempt, in a process of its own with a time limit of its
// own. The same attempt is made outside, where it must succeed: a probe that
// fails everywhere proves nothing.
//
//	open    the attempt succeeded
//	closed  it was refused, or the process was ended for it
//	broken  it did not come to an end in time, or the suite itself is at fault
//
// What a probe aims at (a file, a process, a socket of the host) is made by
// [NewTargets] and told through the environment.
package escape

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Outcomes of a probe.
const (
	Open   = "open"
	Closed = "closed"
	Broken = "broken"
)

// Timeout bounds one probe.
const Timeout = 15 * time.Second

// Probe is one attempt. Try gives nil when it succeeded.
type Probe struct {
	Name  string
	Group string
	Tries string // what it tries, for the table
	Try   func() error
	// Alone means that the attempt may end the sandbox, which is then its own.
	Alone bool
	// Allowed means that the sandbox lets it happen on purpose.
	Allowed bool
}

// Probes lists all of them, in the order of the table.
func Probes() []Probe {
	return slices.Concat(files(), processes(), namespaces(), kernel(), sockets(), mechanisms(), bounds())
}

// Find gives one by its name.
func Find(name string) (Probe, bool) {
	all := Probes()
	i := slices.IndexFunc(all, func(p Probe) bool { return p.Name == name })
	if i < 0 {
		return Probe{}, false
	}
	return all[i], true
}

// Main makes one attempt in this process and says what it came to; it gives
// the exit code.
func Main(name string) int {
	p, ok := Find(name)
	if !ok {
		fmt.Println(Broken, "no such probe")
		return 2
	}
	if err := p.Try(); err != nil {
		fmt.Println(Closed, reason(err))
		return 0
	}
	fmt.Println(Open)
	return 0
}

// reason is short and the same on every run: the kernel's word, if it is one.
func reason(err error) string {
	var e unix.Errno
	if errors.As(err, &e) {
		return unix.ErrnoName(e)
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// Result is what one probe came to.
type Result struct {
	Outcome string
	Reason  string
}

// Read understands what a probe's process left: its output, and the signal
// that ended it.
func Read(output string, signal int) Result {
	if signal != 0 {
		return Result{Closed, unix.SignalName(unix.Signal(signal))}
	}
	line, _, _ := strings.Cut(output, "\n")
	outcome, why, _ := strings.Cut(line, " ")
	if outcome != Open && outcome != Closed {
		return Result{Broken, "said " + fmt.Sprintf("%.60q", output)}
	}
	return Result{outcome, why}
}

func env(name string) string { return os.Getenv("PROBE_" + name) }

// call makes a system call and gives its error.
func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, e := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); e != 0 {
		return e
	}
	return nil
}

// reached takes every refusal of the kernel for a success but those of a
// sandbox: the arguments are such that the call can do no harm.
func reached(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EACCES) {
		return err
	}
	return nil
}

func openFile(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func readable(path string) error { return openFile(path, unix.O_RDONLY) }

func writable(path string) error { return openFile(path, unix.O_WRONLY) }

// creatable makes a file in a folder and removes it again.
func creatable(dir string) error {
	path := fmt.Sprintf("%s/.probe-%d", dir, os.Getpid())
	if err := openFile(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY); err != nil {
		return err
	}
	return unix.Unlink(path)
}
