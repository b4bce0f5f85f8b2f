package sandbox

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ptraceGetFilter is PTRACE_SECCOMP_GET_FILTER of linux/ptrace.h.
const ptraceGetFilter = 0x420c

// stopWait bounds the wait for a traced process to stop: an attach that never
// answers must not hold a preparation up.
const stopWait = time.Second

// readFilter asks the kernel for the newest filter of the canary. It needs
// root in the initial user namespace and a worker without a filter of its own.
func (c canary) readFilter() (program []byte, err error) {
	if c.prep.slot == nil {
		return nil, fmt.Errorf("%w: only root may read a filter back", errNotObservable)
	}
	program, err = traceFilter(c.pid)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotObservable, err)
	}
	return program, nil
}

// traceFilter must run on one thread, which is the tracer; its end would let
// the canary go on in any case.
func traceFilter(pid int) ([]byte, error) {
	if err := unix.PtraceSeize(pid); err != nil {
		return nil, fmt.Errorf("trace the canary: %w", err)
	}
	if err := unix.PtraceInterrupt(pid); err != nil {
		return nil, fmt.Errorf("stop the canary: %w", err)
	}
	if err := awaitStop(pid); err != nil {
		return nil, err
	}
	n, err := getFilter(pid, nil)
	if err != nil {
		return nil, fmt.Errorf("read the filter: %w", err)
	}
	b := make([]byte, n*8)
	if _, err := getFilter(pid, b); err != nil {
		return nil, fmt.Errorf("read the filter: %w", err)
	}
	return b, unix.PtraceDetach(pid)
}

func awaitStop(pid int) error {
	for end := time.Now().Add(stopWait); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		var ws unix.WaitStatus
		got, err := unix.Wait4(pid, &ws, unix.WNOHANG|unix.WALL, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("await the stop of the canary: %w", err)
		}
		if got == pid && ws.Stopped() {
			return nil
		}
	}
	return errors.New("the canary did not stop in time")
}

// getFilter gives the number of instructions, and the program when there is
// room for it.
func getFilter(pid int, to []byte) (int, error) {
	var at unsafe.Pointer
	if len(to) > 0 {
		at = unsafe.Pointer(&to[0])
	}
	n, _, e := unix.Syscall6(unix.SYS_PTRACE, ptraceGetFilter, uintptr(pid), 0, uintptr(at), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}
