// Package load installs a system call filter that the worker made. It is apart
// from package seccomp so that the hand carries no assembler. It imports the
// standard library and golang.org/x/sys.
package load

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// instructionSize is that of struct sock_filter.
const instructionSize = 8

// Filter puts a filter, as seccomp.Program.Bytes gave it, on every thread of the process.
// It needs no_new_privs and cannot be undone.
func Filter(program []byte) error {
	if len(program) == 0 || len(program)%instructionSize != 0 || len(program)/instructionSize > unix.BPF_MAXINSNS {
		return fmt.Errorf("seccomp: a program of %d bytes", len(program))
	}
	f := unix.SockFprog{Len: uint16(len(program) / instructionSize), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	thread, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&f)))
	runtime.KeepAlive(program)
	switch {
	case e != 0:
		return fmt.Errorf("seccomp: install the filter: %w", e)
	case thread != 0:
		return errors.New("seccomp: a thread could not take the filter")
	}
	return nil
}
