package serve

import (
	"encoding/binary"
	"runtime"
	"syscall"
	"unsafe"
)

// dropSignal gives the address of a signal handler that does nothing.
func dropSignal() uintptr

// shield gives a handler to the signals 32 and 34, which package signal and
// the runtime leave alone (33 is the runtime's own). Without one they end
// even process 1 of a namespace, when they arrive while its first thread has
// them blocked, which it has in every handler. Ignoring them instead would be
// inherited by programs.
func shield() {
	const sigsetSize = 8
	action := new([64]byte) // larger than the kernel's structure on any architecture
	act := func(sig syscall.Signal, set, get uintptr) {
		_, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), set, get, sigsetSize, 0, 0)
		if e != 0 {
			panic(e) // wrong numbers in the lines here
		}
	}
	// The runtime's flags, stack and way back; only the handler, the first
	// field, is another.
	p := uintptr(unsafe.Pointer(action))
	act(syscall.SIGUSR1, 0, p)
	binary.NativeEndian.PutUint64(action[:8], uint64(dropSignal()))
	act(32, p, 0)
	act(34, p, 0)
	runtime.KeepAlive(action)
}
