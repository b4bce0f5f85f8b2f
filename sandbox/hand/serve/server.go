// Package serve is the hand's second life: it answers the worker's requests
// from inside the sandbox, as the agent's uid and without a capability. It is
// process 1 of its process namespace, so it also reaps every orphan. It
// imports the standard library, golang.org/x/sys and the wire package.
//
//	Request -> running -> Done | Fail
//	              |  Cancel (exec): every process but the hand is killed
//	              |  Cancel (file tool): stops at the next file
//	connection closed: the hand exits, and the kernel kills the rest
package serve

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"cairn/sandbox/hand/wire"
)

// maxRequests bounds what runs at once; each may hold a thread and some
// descriptors of the hand.
const maxRequests = 32

// drainAfterKill bounds how long a cancelled request waits for a reader.
const drainAfterKill = time.Second

// Server answers requests of one connection.
type Server struct {
	out    *wire.Writer
	spawn  *Spawner
	mu     sync.Mutex
	active map[uint64]*request
}

// request is one running request.
type request struct {
	id        uint64
	exec      bool
	out, err  *wire.Valve
	body      *wire.Queue
	cancelled atomic.Bool
	collapsed atomic.Bool // killed by another request's Cancel
}

// New gives a server that writes to w and starts programs with s.
func New(w *wire.Writer, s *Spawner) *Server {
	return &Server{out: w, spawn: s, active: map[uint64]*request{}}
}

// Serve reads requests until the connection ends. io.EOF is the normal end.
func (s *Server) Serve(r io.Reader) error {
	for {
		f, err := wire.ReadFrame(r)
		if err != nil {
			return err
		}
		if err := s.handle(f); err != nil {
			return err
		}
	}
}

func (s *Server) handle(f wire.Frame) error {
	if f.Kind == wire.KindRequest {
		return s.begin(f)
	}
	s.mu.Lock()
	q := s.active[f.ID]
	s.mu.Unlock()
	if q == nil {
		return nil // ended meanwhile: the worker cannot know it yet
	}
	switch f.Kind {
	case wire.KindBody:
		return q.body.Put(f.Payload)
	case wire.KindBodyEnd:
		q.body.End()
		return nil
	case wire.KindCredit:
		n, err := wire.DecodeCredit(f.Payload)
		if err != nil {
			return err
		}
		if f.Stream == wire.StreamError {
			return q.err.Give(n)
		}
		return q.out.Give(n)
	case wire.KindCancel:
		return s.cancel(q)
	}
	return fmt.Errorf("%w: kind %d from the worker", wire.ErrProtocol, f.Kind)
}

func (s *Server) begin(f wire.Frame) error {
	q := &request{id: f.ID, out: wire.NewValve(), err: wire.NewValve(), body: wire.NewQueue()}
	d := wire.NewDecoder(f.Payload)
	op := wire.Op(d.U8())
	var work func() ([]byte, error)
	switch {
	case op == wire.OpExec:
		m, err := wire.DecodeExec(d)
		if err != nil {
			return err
		}
		q.exec = true
		work = func() ([]byte, error) { return s.runExec(q, m) }
	case op > wire.OpExec && op <= wire.OpStat:
		m, err := wire.DecodeFile(op, d)
		if err != nil {
			return err
		}
		work = func() ([]byte, error) { return s.runFile(q, m) }
	default:
		return fmt.Errorf("%w: operation %d", wire.ErrProtocol, op)
	}
	s.mu.Lock()
	full := len(s.active) >= maxRequests
	if !full {
		s.active[q.id] = q
	}
	s.mu.Unlock()
	if full {
		return s.fail(q.id, fault(wire.CodeBusy, "%d requests run already", maxRequests))
	}
	go s.finish(q, work)
	return nil
}

func (s *Server) finish(q *request, work func() ([]byte, error)) {
	answer, err := work()
	s.mu.Lock()
	delete(s.active, q.id)
	s.mu.Unlock()
	q.out.Close()
	q.err.Close()
	q.body.End()
	if err != nil {
		err = s.fail(q.id, err)
	} else {
		err = s.out.Send(wire.Frame{Kind: wire.KindDone, ID: q.id, Payload: answer})
	}
	_ = err // a broken connection ends Serve, which is where it is told
}

// Fault is an answer that the model can read.
type Fault struct {
	Code, Message string
}

func (f *Fault) Error() string { return f.Code + ": " + f.Message }

func fault(code, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (s *Server) fail(id uint64, err error) error {
	var f *Fault
	if !errors.As(err, &f) {
		f = osFault(err)
	}
	return s.out.Send(wire.Frame{Kind: wire.KindFail, ID: id, Payload: wire.Fail{Code: f.Code, Message: f.Message}.Encode()})
}

func (s *Server) cancel(q *request) error {
	q.cancelled.Store(true)
	if !q.exec {
		q.body.End()
		q.out.Close()
		return nil
	}
	s.mu.Lock()
	for _, other := range s.active {
		if other != q && other.exec {
			other.collapsed.Store(true)
		}
	}
	s.mu.Unlock()
	// What the programs wrote before still goes out, but not for ever.
	time.AfterFunc(drainAfterKill, func() {
		q.out.Close()
		q.err.Close()
	})
	return s.spawn.KillAll()
}

// send puts p on a stream in chunks, as far as credit allows; false means
// that nobody wants it any more.
func (s *Server) send(q *request, stream uint8, p []byte) bool {
	valve := q.out
	if stream == wire.StreamError {
		valve = q.err
	}
	for len(p) > 0 {
		n := min(len(p), wire.Chunk)
		if !valve.Take(n) {
			return false
		}
		if s.out.Send(wire.Frame{Kind: wire.KindData, Stream: stream, ID: q.id, Payload: p[:n]}) != nil {
			return false
		}
		p = p[n:]
	}
	return true
}

// consumed tells the worker that n bytes of the body were used.
func (s *Server) consumed(q *request, n int) bool {
	q.body.Ack(n)
	return s.out.Send(wire.Frame{Kind: wire.KindBodyCredit, ID: q.id, Payload: wire.EncodeCredit(n)}) == nil
}
