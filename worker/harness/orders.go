package harness

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The reasons for which the call under way is stopped.
var (
	errCancelled = errors.New("cancelled")
	errDrained   = errors.New("drained")
	errOutOfTime = errors.New("out of time")
	errWiped     = errors.New("erased")
)

// Orders reach a run from outside while it is under way. The first one that stops the work stays.
//
//	working --Drain--> draining (no new step) --Interrupt--> stopped
//	working --Cancel, Erase, deadline--> stopped
type Orders struct {
	work     context.Context
	stop     context.CancelCauseFunc
	draining chan struct{}
	once     sync.Once
}

// NewOrders makes the orders of one claim. The work also ends with held.
func NewOrders(held context.Context) *Orders {
	work, stop := context.WithCancelCause(held)
	return &Orders{work: work, stop: stop, draining: make(chan struct{})}
}

// Cancel stops the call under way; the log holds the request to cancel the run.
func (o *Orders) Cancel() { o.stop(errCancelled) }

// Erase stops the call under way: the space's key is gone, and this process may still remember its text.
func (o *Orders) Erase() { o.stop(errWiped) }

// Drain lets the call under way end and has the run handed back then.
func (o *Orders) Drain() { o.once.Do(func() { close(o.draining) }) }

// Interrupt stops the call under way and has the run handed back.
func (o *Orders) Interrupt() {
	o.Drain()
	o.stop(errDrained)
}

// Why is errCancelled, errDrained, errOutOfTime or errWiped, or nil while the run may go on.
func (o *Orders) Why() error {
	if cause := context.Cause(o.work); cause != nil {
		return cause
	}
	select {
	case <-o.draining:
		return errDrained
	default:
		return nil
	}
}

// deadline stops the work at a time; the returned function takes that back.
func (o *Orders) deadline(at time.Time) func() {
	timer := time.AfterFunc(time.Until(at), func() { o.stop(errOutOfTime) })
	return func() { timer.Stop() }
}

// pause waits unless something stops the work or drains it.
func (o *Orders) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.draining:
	case <-o.work.Done():
	}
}
