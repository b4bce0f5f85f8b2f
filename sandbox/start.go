package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"cairn/sandbox/hand"
)

// The hand's descriptors: standard streams, connection, its own program, and
// what the preparation adds. The program must be among them: its number in
// this process may be anyone's in the child.
const (
	inheritedProgram = "/proc/self/fd/4"
	firstInherited   = 5
)

// process is a started hand.
type process struct {
	os     *os.Process
	client *hand.Client
	gone   chan struct{} // closed when it was reaped
	words  *lastWords
}

// parent runs every clone on one thread that never ends: the kernel kills a
// child when the thread that made it ends, not when the process does. The
// thread has no_new_privs, which its children inherit before their first
// instruction. The other one is for the tests that leave that out.
var (
	parent        = sync.OnceValue(func() chan<- func() { return newParent(true) })
	lenientParent = sync.OnceValue(func() chan<- func() { return newParent(false) })
)

func newParent(strict bool) chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		if strict {
			// A failure is found by the hand, which refuses to go on without.
			_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		}
		for f := range jobs {
			f()
		}
	}()
	return jobs
}

// startHand clones the hand into its namespaces. It waits there for its plan,
// so that it can be moved into its control group first.
func (p *preparation) startHand(context.Context) error {
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	program, err := os.Open(p.exe)
	if err != nil {
		ours.Close()
		return err
	}
	defer program.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		ours.Close()
		return err
	}
	defer null.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		ours.Close()
		return err
	}
	defer errW.Close()
	attr := &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"GOMEMLIMIT=48MiB", "GOTRACEBACK=single"},
		Files: append([]*os.File{null, null, errW, theirs, program}, p.files...),
		Sys:   p.cloneAttr(),
	}
	proc, err := p.clone(attr)
	if err != nil {
		ours.Close()
		errR.Close()
		return refuse(UserNamespace, "clone into new namespaces: "+err.Error(), err)
	}
	h := &process{os: proc, client: hand.NewClient(ours), gone: make(chan struct{}), words: newLastWords(errR)}
	go func() {
		state, err := proc.Wait()
		h.client.Lose(ended(state, err))
		close(h.gone)
	}()
	p.hand = h
	p.onUndo(h.end)
	if p.group != nil {
		if err := p.group.AddHand(proc.Pid); err != nil {
			return refuseBy(CgroupKill, err)
		}
	}
	return nil
}

func (p *preparation) clone(attr *os.ProcAttr) (proc *os.Process, err error) {
	done := make(chan struct{})
	from := parent
	if p.native.omits(NoNewPrivs) {
		from = lenientParent
	}
	from() <- func() {
		defer close(done)
		proc, err = os.StartProcess(inheritedProgram, []string{"cairn-hand"}, attr)
	}
	<-done
	return proc, err
}

func (p *preparation) cloneAttr() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	for c, flag := range namespaceFlags {
		if !p.native.omits(c) {
			a.Cloneflags |= flag
		}
	}
	if p.native.omits(UserNamespace) {
		return a
	}
	if p.slot != nil {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: p.slot.base, Size: rangeSize}}
		a.GidMappings, a.GidMappingsEnableSetgroups = a.UidMappings, true
		a.Credential = &syscall.Credential{Uid: 0, Gid: agentID} // and no other groups
		return a
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: agentID, HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: agentID, HostID: os.Getegid(), Size: 1}}
	// Not root inside, so the capabilities must be ambient to survive the exec;
	// the hand gives them up.
	for c := uintptr(0); c <= lastCap(); c++ {
		a.AmbientCaps = append(a.AmbientCaps, c)
	}
	return a
}

// setup lets the hand build the sandbox around itself.
func (p *preparation) setup(ctx context.Context) error {
	ready, err := p.hand.client.Setup(ctx, p.plan.Encode())
	var s *hand.SetupError
	if errors.As(err, &s) {
		c := Control(s.Control)
		if p.report.Control(c) == nil {
			return fmt.Errorf("%w: refused for an unknown control %q", ErrHandLost, s.Control)
		}
		p.report.installed(c, false, s.Message)
		return refuse(c, s.Message, err)
	}
	if err != nil {
		return fmt.Errorf("%w%s", err, p.hand.words.text())
	}
	for _, name := range ready.Installed {
		if p.report.Control(Control(name)) == nil {
			return fmt.Errorf("%w: reports an unknown control %q", ErrHandLost, name)
		}
		p.report.installed(Control(name), true, "")
		p.report.reported(Control(name), true)
	}
	for _, f := range ready.Failed {
		c := Control(f.Control)
		if !slices.Contains(p.plan.Optional, f.Control) {
			return fmt.Errorf("%w: went on without %q", ErrHandLost, f.Control)
		}
		p.report.installed(c, false, f.Message)
		p.report.reported(c, false)
	}
	return nil
}

// end kills the hand, and with process 1 the kernel kills its namespace.
func (h *process) end() error {
	h.client.Close()
	if err := h.os.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-h.gone
	return nil
}

func socketPair() (ours, theirs *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "hand"), os.NewFile(uintptr(fds[1]), "hand"), nil
}

// lastWords keeps the end of what the hand writes to standard error: the
// reason when it dies. It is hostile text, shown in errors only.
type lastWords struct {
	mu   sync.Mutex
	b    []byte
	done chan struct{}
}

func newLastWords(r *os.File) *lastWords {
	w := &lastWords{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer r.Close()
		_, _ = io.Copy(w, r)
	}()
	return w
}

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, p...)
	if len(w.b) > 2048 {
		w.b = w.b[len(w.b)-2048:]
	}
	return len(p), nil
}

func (w *lastWords) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.b) == 0 {
		return ""
	}
	return fmt.Sprintf(" (its last words: %q)", w.b)
}

// ended says how the hand's process ended.
func ended(state *os.ProcessState, err error) error {
	if err != nil {
		return fmt.Errorf("its process ended: %w", err)
	}
	return fmt.Errorf("its process ended: %v", state)
}
