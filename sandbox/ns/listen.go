package ns

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// backlog is how many connections wait in the kernel for the worker to take one more.
const backlog = 128

// openListeners opens the plan's ports on 127.0.0.1 and passes them to the worker, in the order of the plan.
// The hand keeps none: whoever asks the worker for something outside can do it only from this network.
func openListeners(p *Plan) error {
	if len(p.Ports) == 0 {
		return nil
	}
	var fds []int
	defer func() {
		for _, fd := range append(fds, int(p.Passage)) {
			unix.Close(fd)
		}
	}()
	for _, port := range p.Ports {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("listener: %w", err)
		}
		fds = append(fds, fd)
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: int(port)}); err != nil {
			return fmt.Errorf("bind 127.0.0.1:%d: %w", port, err)
		}
		if err := unix.Listen(fd, backlog); err != nil {
			return fmt.Errorf("listen on 127.0.0.1:%d: %w", port, err)
		}
	}
	if err := unix.Sendmsg(int(p.Passage), []byte{byte(len(fds))}, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("pass the listeners: %w", err)
	}
	return nil
}

// trustAuthority adds the proxy's certificate to the bundle that writeEtc made.
func trustAuthority(p *Plan, stage string) error {
	if p.Authority == "" {
		return nil
	}
	dir := stage + "/etc/ssl/certs"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(dir+"/ca-certificates.crt", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString("\n" + p.Authority); err != nil {
		return err
	}
	return f.Close()
}
