package escape

import (
	"bytes"
	"net"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func sockets() []Probe {
	at := func(name, tries string, try func() error) Probe {
		return Probe{Name: name, Group: "sockets and IPC", Tries: tries, Try: try}
	}
	socket := func(family, kind, proto int) func() error {
		return func() error {
			fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}
	}
	return []Probe{
		at("vsock", "a socket to the hypervisor", socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)),
		at("packet_socket", "raw frames of an interface", socket(unix.AF_PACKET, unix.SOCK_RAW, 0)),
		at("raw_socket", "raw IP", socket(unix.AF_INET, unix.SOCK_RAW, 1)),
		at("raw_socket6", "raw IPv6", socket(unix.AF_INET6, unix.SOCK_RAW, 58)),
		at("netlink_audit", "the kernel's audit by netlink", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)),
		at("netlink_netfilter", "the packet filter by netlink", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)),
		at("netlink_uevent", "device events by netlink", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)),
		{Name: "netlink_route", Group: "sockets and IPC", Tries: "its own interfaces by netlink", Allowed: true, Try: socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)},
		at("host_tcp", "a TCP server of the host on 127.0.0.1", func() error { return greet("tcp", "127.0.0.1:"+env("PORT")) }),
		at("host_udp", "a UDP server of the host on 127.0.0.1", func() error { return greet("udp", "127.0.0.1:"+env("PORT")) }),
		at("host_tcp6", "a TCP server of the host on ::1", func() error { return greet("tcp", "[::1]:"+env("PORT6")) }),
		at("host_abstract_socket", "an abstract unix socket of the host", func() error { return greet("unix", "@"+env("ABSTRACT")) }),
		at("host_unix_socket", "a unix socket of the host that everyone may use", func() error { return greet("unix", env("SOCKET")) }),
		at("host_shared_memory", "System V shared memory of the host that everyone may use", func() error {
			n, err := strconv.Atoi(env("SHM_KEY"))
			if err != nil {
				return err
			}
			return call(unix.SYS_SHMGET, uintptr(n), 1, 0)
		}),
		at("host_message_queue", "a POSIX message queue of the host that everyone may use", func() error {
			name := append([]byte(env("QUEUE")), 0)
			return call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_RDWR, 0, 0)
		}),
	}
}

// greet wants the answer of the suite's own server: something else may listen
// under the same name inside.
func greet(network, address string) error {
	c, err := net.DialTimeout(network, address, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if network == "udp" { // the others speak first
		if _, err := c.Write([]byte("hello")); err != nil {
			return err
		}
	}
	b := make([]byte, len(greeting))
	if _, err := c.Read(b); err != nil {
		return err
	}
	if !bytes.Equal(b, greeting) {
		return errNotHere
	}
	return nil
}

var greeting = []byte("probe-greeting")
