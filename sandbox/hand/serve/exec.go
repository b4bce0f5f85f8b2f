package serve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cairn/sandbox/hand/wire"
)

const (
	// idleAfterExit is how long a stream may be silent, after the program
	// ended, before a background child that holds it is left to itself.
	idleAfterExit = 100 * time.Millisecond
	// graceAfterExit is how long a background child that keeps writing is
	// listened to; what the ended program itself left is always read.
	graceAfterExit = 500 * time.Millisecond
	// maxDrains bounds the streams of background children kept open.
	maxDrains = 64
)

var drains atomic.Int32

func (s *Server) runExec(q *request, m wire.Exec) ([]byte, error) {
	if len(m.Argv) == 0 || m.Argv[0] == "" {
		return nil, fault(wire.CodeBadArgument, "no program given")
	}
	dir := m.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(workspace, dir)
	}
	path, err := lookPath(m.Argv[0], dir, m.Env)
	if err != nil {
		return nil, err
	}
	io, err := newStdio(m.Stdin)
	if err != nil {
		return nil, err
	}
	end, err := s.spawn.Start(path, m.Argv, &syscall.ProcAttr{
		Dir: dir, Env: m.Env, Files: io.child(), Sys: &syscall.SysProcAttr{Setsid: true},
	})
	io.closeChild()
	if err != nil {
		io.closeParent()
		return nil, execFault(err, m.Argv[0], dir)
	}
	if q.cancelled.Load() { // arrived while the program was being forked
		if err := s.spawn.KillAll(); err != nil {
			return nil, err
		}
	}
	return s.follow(q, io, end), nil
}

// stream is one output of a program.
type stream struct {
	r       *os.File
	number  uint8
	exited  atomic.Bool
	pending int       // bytes in the pipe when the program ended
	until   time.Time // and how long others are listened to
}

// end tells the pump that the program ended. Fields are written before the
// flag that publishes them.
func (t *stream) end() {
	if c, err := t.r.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { t.pending, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	t.until = time.Now().Add(graceAfterExit)
	t.exited.Store(true)
	_ = t.r.SetReadDeadline(time.Now().Add(idleAfterExit)) // fails only when the pump closed it
}

// follow moves the streams until the program ended and they are empty.
func (s *Server) follow(q *request, io *stdio, end <-chan syscall.WaitStatus) []byte {
	streams := []*stream{{r: io.out, number: wire.StreamOutput}, {r: io.err, number: wire.StreamError}}
	var pumps sync.WaitGroup
	for _, t := range streams {
		pumps.Go(func() { s.pump(q, t) })
	}
	if io.in != nil {
		go s.feed(q, io.in)
	}
	ws := <-end
	for _, t := range streams {
		t.end()
	}
	pumps.Wait()
	e := wire.Exited{Code: int64(ws.ExitStatus()), Interrupted: q.collapsed.Load()}
	if ws.Signaled() {
		e.Code, e.Signal = 0, uint64(ws.Signal())
	}
	return e.Encode()
}

// pump sends one stream. What a background child writes later is read and
// dropped: closing its stream would kill it.
func (s *Server) pump(q *request, t *stream) {
	buf := make([]byte, wire.Chunk)
	for after := 0; ; {
		exited := t.exited.Load()
		if exited && after >= t.pending && time.Now().After(t.until) {
			break
		}
		if exited {
			_ = t.r.SetReadDeadline(time.Now().Add(idleAfterExit))
		}
		n, err := t.r.Read(buf)
		if exited {
			after += n
		}
		if n > 0 && !s.send(q, t.number, buf[:n]) || errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			t.r.Close()
			return
		}
	}
	go drain(t.r)
}

func drain(r *os.File) {
	defer r.Close()
	if drains.Add(1) > maxDrains {
		drains.Add(-1)
		return
	}
	defer drains.Add(-1)
	_ = r.SetReadDeadline(time.Time{})
	buf := make([]byte, 4096)
	for {
		if _, err := r.Read(buf); err != nil {
			return
		}
	}
}

func (s *Server) feed(q *request, w *os.File) {
	defer w.Close()
	for {
		p, ok := q.body.Get()
		if !ok {
			return
		}
		// A program that does not read its input is not an error: the rest is
		// taken and dropped.
		_, _ = w.Write(p)
		if !s.consumed(q, len(p)) {
			return
		}
	}
}

// stdio is the hand's side and the program's side of the standard streams.
type stdio struct {
	in, out, err    *os.File
	cin, cout, cerr *os.File
}

func newStdio(stdin bool) (*stdio, error) {
	var t stdio
	var err error
	if t.out, t.cout, err = os.Pipe(); err != nil {
		return nil, err
	}
	if t.err, t.cerr, err = os.Pipe(); err == nil {
		if stdin {
			t.cin, t.in, err = os.Pipe()
		} else {
			t.cin, err = os.Open("/dev/null")
		}
	}
	if err != nil {
		t.closeChild()
		t.closeParent()
		return nil, err
	}
	return &t, nil
}

func (t *stdio) child() []uintptr { return []uintptr{t.cin.Fd(), t.cout.Fd(), t.cerr.Fd()} }

func (t *stdio) closeChild() { closeAll(t.cin, t.cout, t.cerr) }

func (t *stdio) closeParent() { closeAll(t.in, t.out, t.err) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// lookPath finds a program as execvp does, with the PATH of the request.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if filepath.IsAbs(name) {
			return name, nil
		}
		return filepath.Join(dir, name), nil
	}
	for _, e := range env {
		list, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for _, d := range filepath.SplitList(list) {
			p := filepath.Join(d, name)
			if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && unix.Access(p, unix.X_OK) == nil {
				return p, nil
			}
		}
	}
	return "", fault(wire.CodeNotFound, "program %q is not in PATH", name)
}

func execFault(err error, name, dir string) error {
	if st, e := os.Stat(dir); e != nil || !st.IsDir() {
		return fault(wire.CodeNotDirectory, "working directory %s does not exist", dir)
	}
	switch {
	case errors.Is(err, syscall.ENOENT):
		return fault(wire.CodeNotFound, "program %q or its interpreter does not exist", name)
	case errors.Is(err, syscall.EAGAIN):
		return fault(wire.CodeBusy, "cannot start %q: the process limit is reached", name)
	default:
		return fault(wire.CodeNotRunnable, "cannot run %q: %v", name, err)
	}
}
