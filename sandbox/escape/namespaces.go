package escape

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func namespaces() []Probe {
	at := func(name, tries string, try func() error) Probe {
		return Probe{Name: name, Group: "namespaces and mounts", Tries: tries, Try: try}
	}
	apart := func(flags int) func() error {
		return func() error {
			runtime.LockOSThread() // the thread ends with the process
			return unix.Unshare(flags)
		}
	}
	return []Probe{
		at("unshare_user", "a user namespace of its own", func() error { return childIn(syscall.CLONE_NEWUSER) }),
		at("unshare_mount", "a mount namespace of its own", apart(unix.CLONE_NEWNS)),
		at("unshare_net", "a network namespace of its own", apart(unix.CLONE_NEWNET)),
		at("unshare_pid", "a process namespace of its own", apart(unix.CLONE_NEWPID)),
		at("unshare_time", "a time namespace of its own", apart(unix.CLONE_NEWTIME)),
		at("clone_user", "clone into a user and a network namespace", func() error { return childIn(syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET) }),
		at("clone3", "clone3, whose flags no filter can see", func() error { return reached(call(unix.SYS_CLONE3, 0, 0)) }),
		at("enter_namespace", "setns into a namespace that is one's own", func() error {
			runtime.LockOSThread()
			f, err := os.Open("/proc/self/ns/uts")
			if err != nil {
				return err
			}
			return unix.Setns(int(f.Fd()), unix.CLONE_NEWUTS)
		}),
		at("mount", "mount a file system", func() error {
			dir := inScratch("mount")
			if err := os.Mkdir(dir, 0o755); err != nil {
				return err
			}
			defer os.Remove(dir)
			if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
				return err
			}
			return unix.Unmount(dir, unix.MNT_DETACH)
		}),
		at("unmount", "take a mount away", func() error { return reached(unix.Unmount("/nonexistent", unix.MNT_DETACH)) }),
		at("remount_writable", "make /usr writable", func() error {
			return reached(unix.Mount("/nonexistent", "/nonexistent", "", unix.MS_REMOUNT|unix.MS_BIND, ""))
		}),
		at("pivot_root", "pivot_root", func() error { return reached(unix.PivotRoot("/nonexistent", "/nonexistent")) }),
		at("chroot", "chroot", func() error { return reached(unix.Chroot("/nonexistent")) }),
		at("open_tree", "copy a mount", func() error { return newMount(unix.OpenTree(unix.AT_FDCWD, "/proc", unix.OPEN_TREE_CLONE)) }),
		at("move_mount", "attach a mount", func() error { return reached(unix.MoveMount(-1, "", -1, "", unix.MOVE_MOUNT_F_EMPTY_PATH)) }),
		at("fsopen", "prepare a file system", func() error { return newMount(unix.Fsopen("tmpfs", 0)) }),
		at("fsconfig", "configure a file system", func() error { return reached(unix.FsconfigCreate(-1)) }),
		at("fspick", "reconfigure a file system", func() error { return newMount(unix.Fspick(unix.AT_FDCWD, "/", 0)) }),
		at("mount_setattr", "change the attributes of a mount", func() error {
			return reached(unix.MountSetattr(-1, "", 0, &unix.MountAttr{}))
		}),
		at("open_by_handle", "open a file by its number in the file system", func() error {
			return reached(call(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(0), 0, 0))
		}),
	}
}

func newMount(fd int, err error) error {
	if err == nil {
		return unix.Close(fd)
	}
	return err
}

// childIn starts a program in new namespaces. With CLONE_VM and CLONE_VFORK,
// as the standard library clones, the flags go through clone, not clone3.
func childIn(flags uintptr) error {
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: flags}})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}
