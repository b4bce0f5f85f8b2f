package wire

import (
	"fmt"
	"io"
	"sync"
)

// Valve counts the bytes that a sender may still put on one stream. It starts
// with a Window and is closed when the request ends.
type Valve struct {
	mu     sync.Mutex
	cond   *sync.Cond
	avail  int
	closed bool
}

// NewValve gives a valve with one Window.
func NewValve() *Valve {
	v := &Valve{avail: Window}
	v.cond = sync.NewCond(&v.mu)
	return v
}

// Take waits for n bytes of credit; false means that the valve was closed.
func (v *Valve) Take(n int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.avail < n && !v.closed {
		v.cond.Wait()
	}
	if v.closed {
		return false
	}
	v.avail -= n
	return true
}

// Give returns credit. More than a Window in total is a violation.
func (v *Valve) Give(n int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n < 0 || v.avail+n > Window {
		return fmt.Errorf("%w: credit above the window", ErrProtocol)
	}
	v.avail += n
	v.cond.Broadcast()
	return nil
}

// Close wakes every waiter.
func (v *Valve) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	v.cond.Broadcast()
}

// Writer sends whole frames from many goroutines.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

// NewWriter sends to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Send writes one frame with one call.
func (w *Writer) Send(f Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = f.Append(w.buf[:0])
	_, err := w.w.Write(w.buf)
	if cap(w.buf) > 4*Chunk {
		w.buf = nil
	}
	return err
}
