package ns

import (
	"cairn/sandbox/landlock"
	"cairn/sandbox/seccomp/load"
)

// LandlockProbe is a file that every program inside could read, by its mode
// and its mount, but for Landlock; LandlockMark is its content.
const (
	LandlockProbe = "/run/landlock"
	LandlockMark  = "landlock does not bound this process\n"
)

// terminals are the devices whose ioctls programs need.
var terminals = []landlock.Rule{{Path: "/dev/pts", Access: landlock.Terminal}, {Path: "/dev/tty", Access: landlock.Terminal}}

// Rules is what may be opened inside, by the hand and by programs. Names can
// be listed everywhere; content of a folder that is not here is out of reach.
func (p *Plan) Rules() []landlock.Rule {
	rules := []landlock.Rule{
		{Path: "/", Access: landlock.Listed},
		{Path: "/usr", Access: landlock.System},
		{Path: "/opt", Access: landlock.System},
		{Path: "/etc", Access: landlock.Readable},
		{Path: "/dev", Access: landlock.Devices},
		{Path: "/proc", Access: landlock.Kernel},
	}
	for _, dir := range []string{workspace, homeDir, "/tmp", "/dev/shm"} {
		rules = append(rules, landlock.Rule{Path: dir, Access: landlock.Own})
	}
	for _, m := range p.Mounts {
		rules = append(rules, landlock.Rule{Path: m.Target, Access: landlock.System})
	}
	return append(rules, terminals...)
}

// restrictFiles bounds every thread of the hand.
func restrictFiles(p *Plan) error {
	l, err := landlock.Files(p.Rules())
	if err != nil {
		return err
	}
	defer l.Close()
	return l.RestrictProcess()
}

// restrictPrograms puts the programs' own layer on the calling thread: from
// within it nobody can trace the hand, and, as far as the kernel has scopes,
// nobody can signal it.
func restrictPrograms(*Plan) error {
	l, err := landlock.Programs(terminals)
	if err != nil {
		return err
	}
	defer l.Close()
	return l.RestrictThread()
}

// installFilter is the last step: the steps before need what it refuses.
func installFilter(p *Plan) error { return load.Filter(p.Filter) }
