package escape

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func hostPid() int {
	n, _ := strconv.Atoi(env("PID"))
	return n
}

// firstPid is process 1, or outside one of the suite's own.
func firstPid() int {
	if n, err := strconv.Atoi(env("FIRST")); err == nil {
		return n
	}
	return 1
}

func processes() []Probe {
	at := func(name, tries string, try func() error) Probe {
		return Probe{Name: name, Group: "processes", Tries: tries, Try: try}
	}
	return []Probe{
		at("see_host_process", "find a process of the host in /proc", func() error {
			b, err := os.ReadFile("/proc/" + env("PID") + "/cmdline")
			if err == nil && !strings.Contains(string(b), "87654") {
				return unix.ESRCH
			}
			return err
		}),
		at("signal_host_process", "send a signal to a process of the host", func() error { return theirs(unix.Kill(hostPid(), 0)) }),
		at("signal_pid1", "send a signal to process 1", func() error { return unix.Kill(firstPid(), 0) }),
		at("trace_pid1", "trace process 1", func() error { return trace(firstPid()) }),
		at("trace_own_child", "trace a child of one's own", traceChild),
		at("read_process_memory", "process_vm_readv", func() error { return vm(unix.SYS_PROCESS_VM_READV) }),
		at("write_process_memory", "process_vm_writev", func() error { return vm(unix.SYS_PROCESS_VM_WRITEV) }),
		at("take_descriptor", "pidfd_getfd", func() error {
			fd, err := unix.PidfdOpen(os.Getpid(), 0)
			if err != nil {
				return err
			}
			_, err = unix.PidfdGetfd(fd, 0, 0)
			return err
		}),
		at("compare_processes", "kcmp", func() error {
			return call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(os.Getpid()), 1, 0, 0)
		}),
		at("advise_process", "process_madvise", func() error { return reached(call(unix.SYS_PROCESS_MADVISE, ^uintptr(0), 0, 0, 0, 0)) }),
		at("raise_priority", "a nice value below 0", func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) }),
		at("real_time", "the real-time scheduler", func() error {
			p := int32(1)
			return call(unix.SYS_SCHED_SETSCHEDULER, 0, 1, uintptr(unsafe.Pointer(&p)))
		}),
		at("become_root", "setuid to 0", func() error { return syscall.Setresuid(0, 0, 0) }),
	}
}

// theirs refuses a process that merely bears the number of the host's.
func theirs(err error) error {
	if err != nil {
		return err
	}
	b, err := os.ReadFile("/proc/" + env("PID") + "/cmdline")
	if err == nil && !strings.Contains(string(b), "87654") {
		return unix.ESRCH
	}
	return err
}

func trace(pid int) error {
	runtime.LockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	_ = unix.PtraceDetach(pid) // ends with this thread in any case
	return nil
}

func traceChild() error {
	runtime.LockOSThread()
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1"}, &os.ProcAttr{})
	if err != nil {
		return err
	}
	defer func() { _ = p.Kill(); _, _ = p.Wait() }()
	return unix.PtraceSeize(p.Pid)
}

func vm(number uintptr) error {
	a, b := []byte{1}, []byte{0}
	from, to := unix.Iovec{Base: &a[0], Len: 1}, unix.Iovec{Base: &b[0], Len: 1}
	err := call(number, uintptr(os.Getpid()), uintptr(unsafe.Pointer(&from)), 1, uintptr(unsafe.Pointer(&to)), 1, 0)
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	return err
}

// becomeRoot runs the setuid copy of a program that tells its uid.
func becomeRoot(path string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	p, err := os.StartProcess(path, []string{"id", "-u"}, &os.ProcAttr{Files: []*os.File{nil, w, nil}})
	w.Close()
	if err != nil {
		return err
	}
	defer func() { _, _ = p.Wait() }()
	b := make([]byte, 16)
	_ = r.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, err := r.Read(b)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(b[:n])) != "0" {
		return errors.New("uid " + strings.TrimSpace(string(b[:n])))
	}
	return nil
}
