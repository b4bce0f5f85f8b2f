package sandbox

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Spec is one sandbox to prepare.
type Spec struct {
	ID      string            // letters, digits, "-", "_"; unique on this host; names the cgroup
	RunDir  string            // private folder of the run; holds upper, work and lock; made if missing
	Lowers  []string          // read-only folders of the workspace, first is topmost; none: empty workspace
	Mounts  []Mount           // declared read-only mounts
	Env     map[string]string // added to the fixed environment; nothing is inherited
	Limits  Limits
	Grade   Grade     // the lowest that is accepted; empty: C, unless Require names controls
	Require []Control // controls beyond those of the grade
	Network *Network  // nil: nothing is reachable
}

// Mount shows a file or folder of the host, read-only.
type Mount struct {
	Source string // absolute path on the host
	Target string // absolute path inside
}

// Limits bound a sandbox. Zero gives the default in parentheses.
type Limits struct {
	Memory    uint64 // bytes, programs and tmpfs together (2 GiB)
	Pids      uint64 // processes and threads (512)
	FileSize  uint64 // bytes, largest file (1 GiB)
	OpenFiles uint64 // descriptors of one process (4096)
	TmpSize   uint64 // bytes, /tmp (512 MiB)
	HomeSize  uint64 // bytes, /home/agent (512 MiB)
	ShmSize   uint64 // bytes, /dev/shm (64 MiB)
	Output    int    // bytes kept of each output stream of a call (256 KiB)

	Disk       uint64 // bytes of the workspace's changes (8 GiB)
	Inodes     uint64 // files and folders among them (1,000,000)
	VolumeFree uint64 // bytes that must stay free on the volume of RunDir (512 MiB)
}

// minFiles lets the hand serve its 32 requests: the limit is for all processes.
const minFiles = 256

const (
	agentID   = 1000
	agentHome = "/home/agent"
	hostname  = "cairn"
)

var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// check refuses what cannot be prepared and fills the defaults.
func (s *Spec) check() error {
	if !validID.MatchString(s.ID) {
		return fmt.Errorf("sandbox id %q: want up to 64 letters, digits, - or _", s.ID)
	}
	if !filepath.IsAbs(s.RunDir) {
		return fmt.Errorf("run folder %q is not an absolute path", s.RunDir)
	}
	for _, l := range s.Lowers {
		if !filepath.IsAbs(l) {
			return fmt.Errorf("workspace folder %q is not an absolute path", l)
		}
		if err := disjoint(l, s.RunDir); err != nil {
			return err
		}
	}
	for _, m := range s.Mounts {
		if err := m.check(); err != nil {
			return err
		}
	}
	for k, v := range s.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
			return fmt.Errorf("environment variable %q is not valid", k)
		}
	}
	if s.Grade == "" && len(s.Require) == 0 {
		s.Grade = GradeC
	} else if s.Grade == "" {
		s.Grade = GradeF
	}
	if _, err := ParseGrade(string(s.Grade)); err != nil {
		return err
	}
	s.Require = append(s.Grade.needs(), s.Require...)
	for _, c := range s.Require {
		if !slices.Contains(AllControls(), c) {
			return fmt.Errorf("required control %q is unknown", c)
		}
	}
	s.Limits.fill()
	if s.Limits.OpenFiles < minFiles {
		return fmt.Errorf("limit of %d open files is below %d, which the hand itself needs", s.Limits.OpenFiles, minFiles)
	}
	return nil
}

// disjoint keeps upper and work out of a lower: the agent's changes would
// appear in what is promised never to change.
func disjoint(lower, run string) error {
	l, r := resolve(lower), resolve(run)
	if l == r || strings.HasPrefix(r, strings.TrimSuffix(l, "/")+"/") || strings.HasPrefix(l, r+"/upper") || strings.HasPrefix(l, r+"/work") {
		return fmt.Errorf("workspace folder %s and run folder %s overlap", lower, run)
	}
	return nil
}

// resolve follows links as far as the path exists.
func resolve(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if path == "/" {
		return path
	}
	return filepath.Join(resolve(filepath.Dir(path)), filepath.Base(path))
}

// fixedTargets belong to the sandbox itself.
var fixedTargets = []string{"/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys", "/usr", "/workspace"}

func (m Mount) check() error {
	if !filepath.IsAbs(m.Source) || !filepath.IsAbs(m.Target) || filepath.Clean(m.Target) != m.Target {
		return fmt.Errorf("mount %s on %s: want absolute, clean paths", m.Source, m.Target)
	}
	if m.Target == "/" || m.Target == "/tmp" || m.Target == agentHome || m.Target == "/home" {
		return fmt.Errorf("mount %s on %s: this target belongs to the sandbox", m.Source, m.Target)
	}
	if strings.HasPrefix(m.Target, "/usr/local/") {
		return nil
	}
	for _, t := range fixedTargets {
		if m.Target == t || strings.HasPrefix(m.Target, t+"/") {
			return fmt.Errorf("mount %s on %s: %s belongs to the sandbox; use /usr/local/..., /opt/... or another new folder", m.Source, m.Target, t)
		}
	}
	return nil
}

func (l *Limits) fill() {
	defaults := []struct {
		v *uint64
		d uint64
	}{
		{&l.Memory, 2 << 30},
		{&l.Pids, 512},
		{&l.FileSize, 1 << 30},
		{&l.OpenFiles, 4096},
		{&l.TmpSize, 512 << 20},
		{&l.HomeSize, 512 << 20},
		{&l.ShmSize, 64 << 20},
		{&l.Disk, 8 << 30},
		{&l.Inodes, 1_000_000},
		{&l.VolumeFree, 512 << 20},
	}
	for _, f := range defaults {
		if *f.v == 0 {
			*f.v = f.d
		}
	}
	if l.Output <= 0 {
		l.Output = 256 << 10
	}
}

// environment gives the whole environment of one call: the fixed part, then
// the Spec's, then the call's.
func environment(layers ...map[string]string) []string {
	env := map[string]string{
		"HOME": agentHome, "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh",
		"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
		"LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb", "TMPDIR": "/tmp",
	}
	for _, l := range layers {
		for k, v := range l {
			env[k] = v
		}
	}
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}
