//go:build sandboxomit

package ns

import (
	"encoding/binary"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const canOmit = true

// openNetwork adds a route, 10.0.0.0/8 over lo: not a way out, but what the
// worker must not find. The structure is rtentry of linux/route.h, 64 bits.
func openNetwork(*Plan) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var r [120]byte
	name := []byte("lo\x00")
	for at, ip := range map[int][4]byte{8: {10, 0, 0, 0}, 24: {}, 40: {255, 0, 0, 0}} {
		binary.NativeEndian.PutUint16(r[at:], unix.AF_INET)
		copy(r[at+4:], ip[:])
	}
	binary.NativeEndian.PutUint16(r[56:], unix.RTF_UP)
	binary.NativeEndian.PutUint64(r[88:], uint64(uintptr(unsafe.Pointer(&name[0]))))
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCADDRT, uintptr(unsafe.Pointer(&r[0])))
	runtime.KeepAlive(name)
	if e != 0 {
		return e
	}
	return nil
}
