package escape

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Targets is what the probes aim at: things of the host, made for them.
type Targets struct {
	Dir   string // everything below is in it; everyone may enter
	Mount string // folder to be declared as a mount at the same path
	group string // parent of the sandboxes' control groups
	env   map[string]string
	undo  []func()
}

// NewTargets makes them in dir, which must be empty and open to everyone.
// group is the parent of the sandboxes' control groups.
func NewTargets(dir, group string) (*Targets, error) {
	t := &Targets{Dir: dir, Mount: dir + "/mount", group: group, env: map[string]string{}}
	for _, make := range []func() error{t.files, t.process, t.servers, t.ipc, t.names} {
		if err := make(); err != nil {
			t.Close()
			return nil, err
		}
	}
	return t, nil
}

// Close removes them.
func (t *Targets) Close() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
	t.undo = nil
}

func (t *Targets) set(name string, value any) { t.env["PROBE_"+name] = fmt.Sprint(value) }

// Inside is the environment of a probe in the sandbox.
func (t *Targets) Inside() map[string]string {
	m := map[string]string{"PROBE_SCRATCH": "/workspace"}
	for k, v := range t.env {
		m[k] = v
	}
	delete(m, "PROBE_FIRST")
	delete(m, "PROBE_LANDLOCK")
	return m
}

// Outside is that of the same probe outside: it also has what must not be
// inherited.
func (t *Targets) Outside() []string {
	env := append(os.Environ(), "PROBE_SCRATCH="+t.Dir+"/scratch", "SECRET=probe-secret-value")
	for k, v := range t.env {
		env = append(env, k+"="+v)
	}
	// The suite need not be in a group itself: outside, any name will do.
	return append(env, "PROBE_GROUP=:/")
}

func (t *Targets) files() error {
	for _, d := range []string{"/mount", "/mount/open", "/scratch"} {
		if err := os.Mkdir(t.Dir+d, 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(t.Mount+"/open", 0o777); err != nil {
		return err
	}
	id, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		return err
	}
	for name, mode := range map[string]os.FileMode{"/file": 0o666, "/mount/private": 0o600, "/mount/setuid": 0o755, "/mark": 0o444} {
		if err := os.WriteFile(t.Dir+name, id, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(t.Dir+name, mode); err != nil {
			return err
		}
	}
	if err := os.Chmod(t.Mount+"/setuid", 0o755|os.ModeSetuid); err != nil {
		return err
	}
	t.set("FILE", t.Dir+"/file")
	t.set("MOUNT", t.Mount)
	t.set("LANDLOCK", t.Dir+"/mark")
	t.set("DEVICE_MEM", "/dev/mem")
	if _, err := os.Stat("/dev/mem"); err != nil {
		t.set("DEVICE_MEM", "/dev/kmsg") // a machine without: another device that is not for everyone
	}
	t.set("CGROUP", "/sys/fs/cgroup/pids/probe-"+strconv.Itoa(os.Getpid()))
	if _, err := os.Stat("/sys/fs/cgroup/pids"); err != nil {
		t.set("CGROUP", "/sys/fs/cgroup/probe-"+strconv.Itoa(os.Getpid()))
	}
	return nil
}

func (t *Targets) process() error {
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "87654"}, &os.ProcAttr{Env: []string{"A=b"}})
	if err != nil {
		return err
	}
	t.undo = append(t.undo, func() { _ = p.Kill(); _, _ = p.Wait() })
	t.set("PID", p.Pid)
	t.set("FIRST", p.Pid)
	return nil
}

func (t *Targets) servers() error {
	tcp, err := t.listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(tcp)
	if err != nil {
		return err
	}
	t.set("PORT", port)
	udp, err := net.ListenPacket("udp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	t.undo = append(t.undo, func() { udp.Close() })
	go func() {
		b := make([]byte, 64)
		for {
			_, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(greeting, from)
		}
	}()
	six, err := t.listen("tcp", "[::1]:0")
	if err != nil {
		return err
	}
	if _, port, err = net.SplitHostPort(six); err != nil {
		return err
	}
	t.set("PORT6", port)
	t.set("ABSTRACT", "cairn-probe-"+strconv.Itoa(os.Getpid()))
	if _, err := t.listen("unix", "@"+"cairn-probe-"+strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	t.set("SOCKET", filepath.Join(t.Dir, "socket"))
	if _, err := t.listen("unix", t.Dir+"/socket"); err != nil {
		return err
	}
	return os.Chmod(t.Dir+"/socket", 0o666)
}

func (t *Targets) listen(network, address string) (string, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return "", err
	}
	t.undo = append(t.undo, func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(greeting)
			_ = c.Close()
		}
	}()
	return l.Addr().String(), nil
}

func (t *Targets) ipc() error {
	key := 0x63610000 + os.Getpid()%65536
	id, _, e := unix.Syscall(unix.SYS_SHMGET, uintptr(key), 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	if e != 0 {
		return fmt.Errorf("shared memory: %w", e)
	}
	t.undo = append(t.undo, func() { _, _, _ = unix.Syscall(unix.SYS_SHMCTL, id, unix.IPC_RMID, 0) })
	t.set("SHM_KEY", key)
	name := "cairn-probe-" + strconv.Itoa(os.Getpid())
	z := append([]byte(name), 0)
	fd, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&z[0])), unix.O_CREAT|unix.O_RDWR, 0o666, 0, 0, 0)
	if e != 0 {
		return fmt.Errorf("message queue: %w", e)
	}
	t.undo = append(t.undo, func() {
		_ = unix.Close(int(fd))
		_, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&z[0])), 0, 0)
	})
	t.set("QUEUE", name)
	return nil
}

func (t *Targets) names() error {
	host, err := os.Hostname()
	t.set("HOSTNAME", host)
	t.set("GROUP", t.group)
	return err
}
