package escape

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// scratch is a folder in which a probe may write, inside and outside.
func scratch() string { return env("SCRATCH") }

func inScratch(name string) string { return fmt.Sprintf("%s/%s-%d", scratch(), name, os.Getpid()) }

func files() []Probe {
	const g = "files"
	at := func(name, tries string, try func() error) Probe {
		return Probe{Name: name, Group: g, Tries: tries, Try: try}
	}
	return []Probe{
		at("read_host_file", "read a file of the host that everyone may read", func() error { return readable(env("FILE")) }),
		at("write_host_file", "write a file of the host that everyone may write", func() error { return writable(env("FILE")) }),
		at("dotdot_host_file", "reach it by .. from the workspace", func() error { return readable(scratch() + "/../../../../../../../.." + env("FILE")) }),
		at("symlink_host_file", "reach it by a link in the workspace", func() error {
			link := inScratch("link")
			if err := os.Symlink(env("FILE"), link); err != nil {
				return err
			}
			defer os.Remove(link)
			return readable(link)
		}),
		at("hardlink_host_file", "give it a second name in the workspace", func() error {
			if err := unix.Link(env("FILE"), env("FILE")+".probe"); err != nil {
				return err
			}
			return unix.Unlink(env("FILE") + ".probe")
		}),
		at("read_shadow", "read /etc/shadow", func() error { return readable("/etc/shadow") }),
		at("list_root_home", "list /root", func() error { return readable("/root") }),
		at("list_sys", "list /sys/kernel", func() error { return readable("/sys/kernel") }),
		at("read_own_pid_environment", "read the environment of process 1", func() error { return readProcess("environ") }),
		at("read_pid1_maps", "read the memory map of process 1", func() error { return readProcess("maps") }),
		at("read_pid1_memory", "open the memory of process 1", func() error { return openProcess("mem", unix.O_RDONLY) }),
		at("write_pid1_memory", "open the memory of process 1 for writing", func() error { return openProcess("mem", unix.O_RDWR) }),
		at("list_pid1_descriptors", "list the descriptors of process 1", func() error { return openProcess("fd", unix.O_RDONLY) }),
		at("follow_pid1_root", "go through the root of process 1", func() error { return openProcess("root/", unix.O_RDONLY) }),
		at("write_usr", "make a file in /usr/bin", func() error { return creatable("/usr/bin") }),
		at("write_etc", "make a file in /etc", func() error { return creatable("/etc") }),
		at("write_root", "make a file in /", func() error { return creatable("/") }),
		at("write_declared_mount", "make a file in a declared mount that everyone may write", func() error { return creatable(env("MOUNT") + "/open") }),
		at("read_private_file", "read a file in a declared mount that only its owner may read", func() error { return readable(env("MOUNT") + "/private") }),
		at("write_core_pattern", "open /proc/sys/kernel/core_pattern for writing", func() error { return writable("/proc/sys/kernel/core_pattern") }),
		at("write_sysctl", "open /proc/sys/kernel/printk for writing", func() error { return writable("/proc/sys/kernel/printk") }),
		at("read_slab", "open /proc/slabinfo", func() error { return readable("/proc/slabinfo") }),
		at("read_kernel_log", "open /dev/kmsg", func() error { return readable("/dev/kmsg") }),
		at("read_memory_device", "open /dev/mem", func() error { return readable(env("DEVICE_MEM")) }),
		at("write_cgroup", "make a control group", func() error {
			dir := env("CGROUP")
			if err := os.Mkdir(dir, 0o755); err != nil {
				return err
			}
			return os.Remove(dir)
		}),
		at("make_device", "make a device file for the memory of the kernel", func() error { return makeDevice(unix.Mkdev(1, 1)) }),
		at("make_whiteout", "make the device 0:0, the overlay's mark for a deleted file", func() error { return makeDevice(0) }),
		at("give_to_root", "give a file of one's own to root", func() error {
			name := inScratch("own")
			if err := os.WriteFile(name, nil, 0o644); err != nil {
				return err
			}
			defer os.Remove(name)
			if err := os.Chown(name, 1, 1); err != nil {
				return err
			}
			return nil
		}),
		at("setuid_program", "become root by a setuid program in a declared mount", func() error { return becomeRoot(env("MOUNT") + "/setuid") }),
		at("inherited_descriptor", "find a descriptor that was left open", func() error { return leftOpen() }),
		at("inherited_environment", "find a secret of the worker in the environment", func() error {
			if strings.Contains(strings.Join(os.Environ(), "\n"), "probe-secret-value") {
				return nil
			}
			return unix.ENOENT
		}),
	}
}

// firstProcess is process 1, and outside, where that is everyone's, one of the
// suite's own.
func firstProcess() string {
	if p := env("FIRST"); p != "" {
		return "/proc/" + p + "/"
	}
	return "/proc/1/"
}

func readProcess(name string) error {
	b, err := os.ReadFile(firstProcess() + name)
	if err == nil && len(b) == 0 {
		return unix.ENODATA
	}
	return err
}

func openProcess(name string, flags int) error { return openFile(firstProcess()+name, flags) }

func makeDevice(dev uint64) error {
	name := inScratch("device")
	if err := unix.Mknod(name, unix.S_IFCHR|0o600, int(dev)); err != nil {
		return err
	}
	return unix.Unlink(name)
}

func leftOpen() error {
	for fd := 3; fd < 64; fd++ {
		to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			return nil
		}
	}
	return unix.EBADF
}
