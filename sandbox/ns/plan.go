// Package ns is what the hand does between its first instruction and the
// first request: it turns a process that the worker has cloned into fresh
// namespaces into a sandbox. It imports the standard library,
// golang.org/x/sys and the room's wire, layer, landlock and seccomp packages.
//
// The worker decides everything and sends it as a [Plan]; nothing is read
// from the environment. The order matters and is fixed:
//
//	cloned --Plan--> mounts -> pivot_root -> descriptors closed -> rlimits
//	       -> capabilities and uid -> no_new_privs -> Landlock -> seccomp
//	       -> Ready --> serving
//	          any step fails: Fail{control} and exit, nothing of the agent ran
package ns

import (
	"cairn/sandbox/hand/wire"
)

// Plan is the set-up of one sandbox. Descriptors are numbers in the hand's
// table, inherited from the worker.
type Plan struct {
	Range    bool     // a uid range is mapped: set up as 0, serve as Agent
	Agent    uint64   // uid and gid inside
	Hostname string   // uts name
	Root     Source   // the read-only part, made by the worker: then System and Mounts are in it
	System   Source   // host /usr
	Run      Source   // the folder that holds upper and work
	Upper    Source   // in Run
	Work     Source   // in Run
	Lowers   []Source // first is topmost; empty for an empty workspace
	Mounts   []Bind   // declared read-only mounts
	TmpSize  uint64   // bytes, /tmp
	HomeSize uint64   // bytes, /home/agent
	ShmSize  uint64   // bytes, /dev/shm
	FileSize uint64   // bytes, RLIMIT_FSIZE
	Files    uint64   // RLIMIT_NOFILE
	Procs    uint64   // RLIMIT_NPROC, 0 leaves it to the pids cgroup
	Tasks    []int64  // open cgroup v1 "tasks" files of the payload group
	Cgroup   int64    // open cgroup v2 folder of the payload group, or -1
	Filter   []byte   // system call filter, as the kernel takes it
	Optional []string // controls whose failure is reported instead of ending the set-up
	Omit     []string // controls left out; refused unless built for the tests

	Passage   int64   // socket over which the listeners go to the worker, when there are Ports
	Ports     []int64 // to listen on, on 127.0.0.1 inside
	Authority string  // PEM, trusted inside beside the host's bundle; empty for none
}

// Source is a tree to mount: an open detached mount (FD) or, when FD is -1, a
// path of the host that the hand can reach itself.
type Source struct {
	FD   int64
	Path string
}

// Bind is a Source and where it appears.
type Bind struct {
	Source Source
	Target string
}

func (s Source) put(e *wire.Encoder) {
	e.I64(s.FD)
	e.Str(s.Path)
}

func source(d *wire.Decoder) Source { return Source{FD: d.I64(), Path: d.Str()} }

// made tells whether the worker made the read-only part.
func (p *Plan) made() bool { return p.Root.FD >= 0 }

// Encode gives the payload of the Setup frame.
func (p Plan) Encode() []byte {
	var e wire.Encoder
	e.Bool(p.Range)
	e.U64(p.Agent)
	e.Str(p.Hostname)
	for _, s := range []Source{p.Root, p.System, p.Run, p.Upper, p.Work} {
		s.put(&e)
	}
	e.U64(uint64(len(p.Lowers)))
	for _, s := range p.Lowers {
		s.put(&e)
	}
	e.U64(uint64(len(p.Mounts)))
	for _, b := range p.Mounts {
		b.Source.put(&e)
		e.Str(b.Target)
	}
	for _, n := range []uint64{p.TmpSize, p.HomeSize, p.ShmSize, p.FileSize, p.Files, p.Procs} {
		e.U64(n)
	}
	e.U64(uint64(len(p.Tasks)))
	for _, fd := range p.Tasks {
		e.I64(fd)
	}
	e.I64(p.Cgroup)
	e.Str(string(p.Filter))
	e.Strs(p.Optional)
	e.Strs(p.Omit)
	e.I64(p.Passage)
	e.U64(uint64(len(p.Ports)))
	for _, port := range p.Ports {
		e.I64(port)
	}
	e.Str(p.Authority)
	return e.B
}

// DecodePlan reads what Encode wrote.
func DecodePlan(b []byte) (Plan, error) {
	d := wire.NewDecoder(b)
	p := Plan{Range: d.Bool(), Agent: d.U64(), Hostname: d.Str()}
	p.Root, p.System, p.Run, p.Upper, p.Work = source(d), source(d), source(d), source(d), source(d)
	for n := d.U64(); n > 0 && d.Err() == nil; n-- {
		p.Lowers = append(p.Lowers, source(d))
	}
	for n := d.U64(); n > 0 && d.Err() == nil; n-- {
		p.Mounts = append(p.Mounts, Bind{Source: source(d), Target: d.Str()})
	}
	for _, n := range []*uint64{&p.TmpSize, &p.HomeSize, &p.ShmSize, &p.FileSize, &p.Files, &p.Procs} {
		*n = d.U64()
	}
	for n := d.U64(); n > 0 && d.Err() == nil; n-- {
		p.Tasks = append(p.Tasks, d.I64())
	}
	p.Cgroup, p.Filter, p.Optional, p.Omit = d.I64(), []byte(d.Str()), d.Strs(), d.Strs()
	p.Passage = d.I64()
	for n := d.U64(); n > 0 && d.Err() == nil; n-- {
		p.Ports = append(p.Ports, d.I64())
	}
	p.Authority = d.Str()
	return p, d.End()
}
