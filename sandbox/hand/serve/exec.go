package serve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
	// mostAfterExit is the largest buffer a pipe can have, hence the most that
	// the ended program can have left in it.
	mostAfterExit = 1 << 20
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

// follow moves the streams until the program ended and they are empty.
func (s *Server) follow(q *request, io *stdio, end <-chan syscall.WaitStatus) []byte {
	var exited atomic.Bool
	pumps := make(chan struct{}, 2)
	pump := func(r *os.File, stream uint8) {
		s.pump(q, r, stream, &exited)
		pumps <- struct{}{}
	}
	go pump(io.out, wire.StreamOutput)
	go pump(io.err, wire.StreamError)
	if io.in != nil {
		go s.feed(q, io.in)
	}
	ws := <-end
	exited.Store(true)
	soon := time.Now().Add(idleAfterExit)
	_ = io.out.SetReadDeadline(soon) // fails only when the pump closed it
	_ = io.err.SetReadDeadline(soon)
	<-pumps
	<-pumps
	e := wire.Exited{Code: int64(ws.ExitStatus()), Interrupted: q.collapsed.Load()}
	if ws.Signaled() {
		e.Code, e.Signal = 0, uint64(ws.Signal())
	}
	return e.Encode()
}

// pump sends one stream. What a background child writes later is read and
// dropped: closing its stream would kill it.
func (s *Server) pump(q *request, r *os.File, stream uint8, exited *atomic.Bool) {
	buf := make([]byte, wire.Chunk)
	after := 0
	for {
		if exited.Load() {
			_ = r.SetReadDeadline(time.Now().Add(idleAfterExit))
		}
		n, err := r.Read(buf)
		if exited.Load() {
			after += n
		}
		if n > 0 && !s.send(q, stream, buf[:n]) {
			break
		}
		if errors.Is(err, os.ErrDeadlineExceeded) || after > mostAfterExit {
			break
		}
		if err != nil {
			r.Close()
			return
		}
	}
	go drain(r)
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
