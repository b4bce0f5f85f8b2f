package wire

import (
	"fmt"
	"sync"
)

// Queue holds the bytes of one stream between the connection's reader, which
// must never wait, and the consumer. It refuses what a sender without credit
// sends, so that it holds at most one Window.
type Queue struct {
	mu     sync.Mutex
	cond   *sync.Cond
	parts  [][]byte
	held   int // bytes put and not acknowledged
	closed bool
}

// NewQueue is empty and open.
func NewQueue() *Queue {
	q := &Queue{}
	q.cond = sync.NewCond(&q.mu)
	return q
}

// Put adds one frame's payload.
func (q *Queue) Put(p []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(p) == 0:
		return fmt.Errorf("%w: empty data frame", ErrProtocol)
	case q.closed:
		return fmt.Errorf("%w: data after the end of its stream", ErrProtocol)
	case q.held+len(p) > Window:
		return fmt.Errorf("%w: %d bytes unacknowledged, window %d", ErrProtocol, q.held+len(p), Window)
	}
	q.held += len(p)
	q.parts = append(q.parts, p)
	q.cond.Signal()
	return nil
}

// End lets Get return false once everything put was taken.
func (q *Queue) End() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.cond.Broadcast()
}

// Get waits for the next part. The consumer calls Ack when it is done with
// it, and sends the credit.
func (q *Queue) Get() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.parts) == 0 && !q.closed {
		q.cond.Wait()
	}
	if len(q.parts) == 0 {
		return nil, false
	}
	p := q.parts[0]
	q.parts[0] = nil
	q.parts = q.parts[1:]
	return p, true
}

// Ack frees n bytes of the window.
func (q *Queue) Ack(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held -= n
}
