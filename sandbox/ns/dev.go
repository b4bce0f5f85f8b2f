package ns

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"cairn/sandbox/layer"
)

// mountDevices makes the smallest useful /dev: harmless device files of the
// host (none can be made in a user namespace), and the folders for terminals
// and shared memory.
func mountDevices(_ *Plan, stage string) error {
	dev := stage + "/dev"
	if err := tmpfs(dev, "mode=0755,size=64k,nr_inodes=64", unix.MS_NOSUID|unix.MS_NOEXEC); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := bindDevice("/dev/"+name, dev+"/"+name); err != nil {
			return err
		}
	}
	for _, d := range []string{"/pts", "/shm"} {
		if err := os.Mkdir(dev+d, 0o755); err != nil {
			return err
		}
	}
	links := map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
	for name, to := range links {
		if err := os.Symlink(to, dev+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// mountTerminals mounts the sandbox's own terminals and shared memory.
func mountTerminals(p *Plan) error {
	pts := "newinstance,ptmxmode=0666,mode=0620"
	if p.Range {
		pts += ",gid=5"
	}
	if err := unix.Mount("devpts", stage+"/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, pts); err != nil {
		return fmt.Errorf("mount devpts: %w", err)
	}
	return tmpfs(stage+"/dev/shm", "mode=1777"+size(p.ShmSize), unix.MS_NOSUID|unix.MS_NODEV)
}

func bindDevice(host, at string) error {
	f, err := os.OpenFile(at, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	f.Close()
	t, err := layer.Tree(host, layer.Attr{Device: true, Inside: true})
	if err != nil {
		return err
	}
	defer t.Close()
	return layer.Attach(int(t.Fd()), at)
}
