package escape

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func kernel() []Probe {
	at := func(name, tries string, try func() error) Probe {
		return Probe{Name: name, Group: "interfaces of the kernel", Tries: tries, Try: try}
	}
	return []Probe{
		at("session_keyring", "keyctl", func() error { return reached(call(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2-1), 0)) }),
		at("add_key", "add_key", func() error { return reached(call(unix.SYS_ADD_KEY, 0, 0, 0, 0, 0)) }),
		at("request_key", "request_key", func() error { return reached(call(unix.SYS_REQUEST_KEY, 0, 0, 0, 0)) }),
		at("bpf", "load a program into the kernel", func() error { return reached(call(unix.SYS_BPF, 0, 0, 0)) }),
		at("io_uring", "io_uring_setup", func() error {
			var p [120]byte
			return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p[0])))
		}),
		at("io_uring_enter", "io_uring_enter", func() error { return reached(call(unix.SYS_IO_URING_ENTER, ^uintptr(0), 0, 0, 0, 0, 0)) }),
		at("perf_event", "perf_event_open", func() error { return reached(call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, ^uintptr(0), 0)) }),
		at("userfaultfd", "userfaultfd", func() error { return call(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1) }),
		at("fanotify", "fanotify_init", func() error { return call(unix.SYS_FANOTIFY_INIT, unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID, 0) }),
		at("reboot", "reboot", func() error { return reached(call(unix.SYS_REBOOT, 1, 2, 0, 0)) }),
		at("swap", "swapon", func() error {
			name := []byte("/nonexistent\x00")
			return reached(call(unix.SYS_SWAPON, uintptr(unsafe.Pointer(&name[0])), 0))
		}),
		at("set_clock", "clock_settime", func() error { return reached(call(unix.SYS_CLOCK_SETTIME, 9999, 0)) }),
		at("set_hostname", "sethostname", func() error {
			name, err := os.Hostname()
			if err != nil {
				return err
			}
			return unix.Sethostname([]byte(name))
		}),
		at("kernel_messages", "syslog", func() error { return call(unix.SYS_SYSLOG, 10, 0, 0) }),
		at("accounting", "acct", func() error { return reached(unix.Acct("/nonexistent")) }),
		at("quota", "quotactl", func() error { return reached(call(unix.SYS_QUOTACTL, 0, 0, 0, 0)) }),
		at("personality", "switch address randomisation off", func() error { return call(unix.SYS_PERSONALITY, 0x0040000) }),
		at("type_for_terminal", "TIOCSTI: keystrokes for a terminal", func() error {
			b := byte('x')
			return onTerminal(unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
		}),
		at("line_discipline", "TIOCSETD: another driver for a terminal", func() error {
			n := int32(0)
			return onTerminal(unix.TIOCSETD, uintptr(unsafe.Pointer(&n)))
		}),
		at("device_ioctl", "an ioctl of a device that is no terminal", func() error {
			fd, err := unix.Open("/dev/urandom", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			var n int32
			return call(unix.SYS_IOCTL, uintptr(fd), 0x80045200, uintptr(unsafe.Pointer(&n))) // RNDGETENTCNT
		}),
		{Name: "terminal_works", Group: "interfaces of the kernel", Tries: "a pseudo terminal with its ioctls", Allowed: true, Try: func() error {
			var size unix.Winsize
			return onTerminal(unix.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
		}},
	}
}

// onTerminal makes an ioctl on the far end of a new pseudo terminal.
func onTerminal(request uint, arg uintptr) error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(master)
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	slave, err := unix.Open("/dev/pts/"+itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(slave)
	return call(unix.SYS_IOCTL, uintptr(slave), uintptr(request), arg)
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

var errNotHere = errors.New("this machine has none")
