package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pidFile is what PostgreSQL writes into postmaster.pid, by line: 1 pid, 4 port,
// 5 first socket folder (the source is its header utils/pidfile.h).
type pidFile struct {
	pid    int
	port   int
	socket string
}

func readPidFile(data string) (pidFile, bool) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return pidFile{}, false
	}
	lines := append(strings.Split(string(text), "\n"), "", "", "", "", "")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 1 {
		return pidFile{}, false
	}
	p := pidFile{pid: pid, port: port, socket: strings.TrimSpace(lines[4])}
	if n, err := strconv.Atoi(strings.TrimSpace(lines[3])); err == nil {
		p.port = n
	}
	return p, true
}

// isPostmaster tells whether pid is, now, a server of data run by uid. The
// command line is readable for everybody; cwd needs more than root has in a container.
func isPostmaster(pid, uid int, data string) bool {
	dir := fmt.Sprintf("/proc/%d", pid)
	text, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return false
	}
	args := strings.Split(string(text), "\x00")
	if name := filepath.Base(args[0]); name != "postgres" && name != "postmaster" {
		return false
	}
	if owner, _, err := ownerOf(dir); err != nil || owner != uid {
		return false
	}
	if slices.Contains(args, data) {
		return true
	}
	cwd, err := os.Readlink(dir + "/cwd") // one started by hand may name it in another way
	return err == nil && cwd == data
}

// orphans lists the backends of a cluster by their process title, which is
// "postgres: CLUSTER_NAME: ...".
func orphans(name string, uid int) []int {
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // fails only on a malformed pattern
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), "postgres: "+name+": ") {
			continue
		}
		if owner, _, err := ownerOf(filepath.Dir(file)); err != nil || owner != uid {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// reap collects a postmaster that this process started and that has ended; how is empty while it runs.
func reap(child int) (how string) {
	var ws unix.WaitStatus
	if child == 0 {
		return ""
	}
	if got, err := unix.Wait4(child, &ws, unix.WNOHANG, nil); err != nil || got != child {
		return ""
	}
	if ws.Signaled() {
		return "was killed by signal " + ws.Signal().String()
	}
	return fmt.Sprintf("ended with exit code %d", ws.ExitStatus())
}
