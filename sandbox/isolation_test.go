package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestEveryControlIsObserved(t *testing.T) {
	i := prepare(t, nil)
	r := i.Report()
	for _, c := range r.Controls {
		if !c.Requested || c.Installed == nil || !*c.Installed || c.Observed == nil || !*c.Observed {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
	if len(r.Controls) != len(AllControls()) || r.Grade == nil || *r.Grade != GradeC || len(r.Missing) != 0 || r.Identity != "uid_range" {
		t.Errorf("report %+v", r)
	}
	if f := r.Filter; f.Observed == nil || *f.Observed != f.Requested || len(r.Policy) != 64 || r.Landlock == nil {
		t.Errorf("filter %+v policy %q landlock %v", f, r.Policy, r.Landlock)
	}
	b, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(b), `"grade":"C"`) || !strings.Contains(string(b), `"observed":true`) {
		t.Errorf("%s %v", b, err)
	}
}

// fingerprint describes every entry of a tree, content and times included.
func fingerprint(t testing.TB, root string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		s := st.Sys().(*syscall.Stat_t)
		fmt.Fprintln(h, name, st.Mode(), s.Uid, s.Gid, s.Size, s.Mtim, s.Ctim, s.Nlink)
		if st.Mode().IsRegular() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			h.Write(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// tree makes a folder that uid owns, with private and read-only entries.
func tree(t testing.TB, uid int) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.MkdirAll(dir+"/sub/deep", 0o755))
	must(t, os.WriteFile(dir+"/a.txt", []byte("alpha\n"), 0o600))
	must(t, os.WriteFile(dir+"/sub/b.txt", []byte("beta\n"), 0o644))
	must(t, os.WriteFile(dir+"/sub/deep/c.txt", []byte("gamma\n"), 0o444))
	must(t, os.Symlink("a.txt", dir+"/link"))
	must(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(name, uid, uid)
	}))
	must(t, os.Chmod(dir, 0o700))
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLowerStaysAsItWas(t *testing.T) {
	needRoot(t)
	for _, uid := range []int{0, 1000, 33, 70000} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			lower := tree(t, uid)
			before := fingerprint(t, lower)
			i := prepare(t, func(s *Spec) { s.Lowers = []string{lower} })
			out := shell(t, i, `set -e; stat -c %U:%G . a.txt link sub/deep | sort -u
				cat a.txt sub/deep/c.txt; echo more >> a.txt; chmod 600 sub/deep/c.txt; mv sub/b.txt moved; rm link
				touch sub/deep; mkdir new; echo x > new/x; cat a.txt; rm -rf sub; ls`)
			if !strings.HasPrefix(out, "agent:agent\nalpha\ngamma\n") || !strings.HasSuffix(out, "alpha\nmore\na.txt\nmoved\nnew\n") {
				t.Errorf("inside: %q", out)
			}
			must(t, i.Close())
			if after := fingerprint(t, lower); after != before {
				t.Error("the lower changed")
			}
			if b, err := os.ReadFile(i.Upper() + "/a.txt"); err != nil || string(b) != "alpha\nmore\n" {
				t.Errorf("upper: %q %v", b, err)
			}
		})
	}
}

func TestLayersStackInOrder(t *testing.T) {
	needRoot(t)
	top, bottom := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(top+"/f", []byte("top"), 0o644))
	must(t, os.WriteFile(bottom+"/f", []byte("bottom"), 0o644))
	must(t, os.WriteFile(bottom+"/g", []byte("g"), 0o644))
	i := prepare(t, func(s *Spec) { s.Lowers = []string{top, bottom} })
	if out := shell(t, i, "cat f g"); out != "topg" {
		t.Errorf("%q", out)
	}
}

func TestHostIsInvisible(t *testing.T) {
	t.Setenv("SANDBOX_TEST_SECRET", "do-not-leak-7431")
	marker := filepath.Join(os.TempDir(), fmt.Sprintf("cairn-marker-%d", os.Getpid()))
	must(t, os.WriteFile(marker, []byte("x"), 0o666))
	defer os.Remove(marker)
	i := prepare(t, nil)
	for _, c := range []string{
		"ls /root", "cat /etc/shadow", "ls /work", "ls /usr/local/go", "ls /var/lib/dpkg/status", "ls " + marker,
		"ls /sys/kernel", "cat /proc/1/environ", "cat /proc/1/maps", "ls /proc/1/fd", "ls -l /proc/1/root/",
		"echo x > /usr/x", "echo x > /etc/x", "echo x > /x", "mkdir /opt/x", "echo x > /proc/sys/kernel/core_pattern", "echo 1 > /proc/sys/user/max_user_namespaces",
		"mount -t tmpfs none /tmp", "unshare -U true", "unshare -Ur true", "unshare -m true", "mknod /tmp/n c 1 3", "chroot / true", "hostname x", "umount /workspace",
		"kill -9 1; kill -0 1 && test -d /proc/1 && false", "mount -o remount,rw /usr", "dmesg >/dev/null 2>&1 && cat /dev/kmsg", "nsenter -t 1 -m true", "cat /dev/sda /dev/vda /dev/mem",
	} {
		r, err := i.Exec(context.Background(), ExecRequest{Shell: c, Timeout: 20 * time.Second})
		must(t, err)
		if r.ExitCode == nil || *r.ExitCode == 0 {
			t.Errorf("%q worked: %s", c, r.Stdout.Text())
		}
	}
	out := shell(t, i, "ps axo pid,args; env; ls /proc | grep -c '^[0-9]'; cat /proc/[0-9]*/cmdline /proc/self/environ | tr '\\0' ' '; hostname; id -u; pwd; cat /proc/self/cgroup")
	for _, leak := range []string{"do-not-leak", "sandbox.test", "go test", "/root", testParent} {
		if strings.Contains(out, leak) {
			t.Errorf("%q is visible:\n%s", leak, out)
		}
	}
}

func TestNoNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c, err := net.Dial("tcp", l.Addr().String()) // positive control: outside it answers
	must(t, err)
	c.Close()
	i := prepare(t, nil)
	r, err := i.Exec(context.Background(), ExecRequest{Argv: []string{"/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/" + port}, Timeout: 20 * time.Second})
	must(t, err)
	if r.ExitCode == nil || *r.ExitCode == 0 || !strings.Contains(r.Stderr.Text(), "refused") {
		t.Errorf("connect: %+v %s", r.ExitCode, r.Stderr.Text())
	}
	if out := shell(t, i, `tail -n +3 /proc/net/dev | cut -d: -f1; tail -n +2 /proc/net/route; cat /etc/resolv.conf; cat /proc/net/unix | tail -n +2`); strings.TrimSpace(out) != "lo" {
		t.Errorf("network: %q", out)
	}
}

func TestSetuidDoesNothing(t *testing.T) {
	needRoot(t)
	lower := t.TempDir()
	b, err := os.ReadFile("/usr/bin/id")
	must(t, err)
	must(t, os.WriteFile(lower+"/id", b, 0o755))
	must(t, os.Chmod(lower+"/id", 0o6755))
	i := prepare(t, func(s *Spec) { s.Lowers = []string{lower} })
	out := shell(t, i, "./id -u; cp ./id id2; chmod 6755 id2; ./id2 -u; find /usr/bin/su /usr/bin/passwd -perm -4000 | head -1; su -c id </dev/null || true")
	if !strings.HasPrefix(out, "1000\n1000\n") || strings.Contains(out, "uid=0") {
		t.Errorf("%q", out)
	}
}

func TestDescriptorsAreNotInherited(t *testing.T) {
	needRoot(t)
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("descriptor-secret"), 0o644))
	f, err := os.Open(secret)
	must(t, err)
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd())) // Dup clears close-on-exec: every child inherits it
	must(t, err)
	defer syscall.Close(fd)
	i := prepare(t, nil)
	if out := shell(t, i, "ls -l /proc/self/fd | awk 'NR>1{print $9}' | sort -n | tr '\\n' ' '"); strings.TrimSpace(out) != "0 1 2 3" {
		t.Errorf("descriptors %q", out) // 3 is the folder that ls reads
	}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", i.prep.hand.os.Pid))
	must(t, err)
	for _, l := range links {
		if to, _ := os.Readlink(l); strings.Contains(to, "secret") || strings.HasPrefix(to, "/usr") || strings.HasPrefix(to, "/memfd") {
			t.Errorf("the hand holds %s", to)
		}
	}
}

func TestMounts(t *testing.T) {
	needRoot(t)
	dir := filepath.Join(t.TempDir(), "private", "tool")
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(dir+"/f", []byte("tool"), 0o644))
	file := filepath.Join(t.TempDir(), "one")
	must(t, os.WriteFile(file, []byte("file"), 0o644))
	i := prepare(t, func(s *Spec) {
		s.Mounts = []Mount{{dir, "/opt/tool"}, {dir, "/usr/local/tool"}, {dir, "/root/x/tool"}, {file, agentHome + "/.conf/one"}}
	})
	if out := shell(t, i, "cat /opt/tool/f /usr/local/tool/f /root/x/tool/f ~/.conf/one; touch /opt/tool/f /opt/tool/g ~/.conf/one 2>/dev/null || echo ' denied'"); out != "tooltooltoolfile denied\n" {
		t.Errorf("%q", out)
	}
	for _, target := range []string{"/", "/usr", "/usr/bin/x", "/etc/x", "/proc/x", "/workspace/x", "/dev/x", "relative", "/opt/../etc", agentHome} {
		s := testSpec(t)
		s.Mounts = []Mount{{dir, target}}
		if _, err := newNative(t).Prepare(context.Background(), s); err == nil {
			t.Errorf("mount on %s was accepted", target)
		}
	}
}

func TestSpecIsChecked(t *testing.T) {
	needRoot(t)
	lower := t.TempDir()
	for name, change := range map[string]func(*Spec){
		"id":            func(s *Spec) { s.ID = "../x" },
		"run":           func(s *Spec) { s.RunDir = "x" },
		"lower":         func(s *Spec) { s.Lowers = []string{"x"} },
		"overlap":       func(s *Spec) { s.Lowers, s.RunDir = []string{lower}, lower+"/.cairn/run" },
		"no such lower": func(s *Spec) { s.Lowers = []string{"/nonexistent"} },
		"lower is file": func(s *Spec) { s.Lowers = []string{"/etc/passwd"} },
		"no such mount": func(s *Spec) { s.Mounts = []Mount{{"/nonexistent", "/opt/x"}} },
		"control":       func(s *Spec) { s.Require = []Control{"magic"} },
		"environment":   func(s *Spec) { s.Env = map[string]string{"A=B": "c"} },
	} {
		s := testSpec(t)
		change(&s)
		if i, err := newNative(t).Prepare(context.Background(), s); err == nil {
			i.Close()
			t.Errorf("%s was accepted", name)
		}
	}
}
