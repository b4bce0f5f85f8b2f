package hand

import (
	"fmt"

	"cairn/sandbox/hand/wire"
)

// creditAt is how much is taken before the hand hears of it: half a window,
// so that it never waits for what is on its way.
const creditAt = wire.Window / 2

// Call is one running request. Its streams end before Done is closed.
type Call struct {
	client   *Client
	id       uint64
	out, err *wire.Queue
	body     *wire.Valve
	done     chan struct{}
	answer   []byte
	failure  error
}

func (k *Call) data(f wire.Frame) error {
	switch f.Stream {
	case wire.StreamOutput:
		return k.out.Put(f.Payload)
	case wire.StreamError:
		return k.err.Put(f.Payload)
	}
	return fmt.Errorf("%w: data on stream %d", wire.ErrProtocol, f.Stream)
}

// end is called once: whoever took the call out of the table calls it.
func (k *Call) end(answer []byte, err error) {
	k.answer, k.failure = answer, err
	k.out.End()
	k.err.End()
	k.body.Close()
	close(k.done)
}

func (k *Call) send(kind wire.Kind, stream uint8, p []byte) error {
	if err := k.client.out.Send(wire.Frame{Kind: kind, Stream: stream, ID: k.id, Payload: p}); err != nil {
		k.client.lose(err)
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return nil
}

// Done is closed when the answer is there.
func (k *Call) Done() <-chan struct{} { return k.done }

// Answer gives the payload of the Done frame, a *Fault, or ErrLost. Only
// after Done.
func (k *Call) Answer() ([]byte, error) { return k.answer, k.failure }

// Stream hands every part of one stream to f, in order, and returns at its
// end. A slow f slows the program that writes, and nothing else.
func (k *Call) Stream(stream uint8, f func([]byte)) {
	q := k.out
	if stream == wire.StreamError {
		q = k.err
	}
	for taken := 0; ; {
		p, ok := q.Get()
		if !ok {
			return
		}
		f(p)
		q.Ack(len(p))
		if taken += len(p); taken < creditAt {
			continue
		}
		select {
		case <-k.done: // nothing more will come: credit would be for an ended request
		default:
			_ = k.send(wire.KindCredit, stream, wire.EncodeCredit(taken)) // a loss ends the queue too
		}
		taken = 0
	}
}

// Body sends p, as fast as the hand takes it; false means that the request
// ended before.
func (k *Call) Body(p []byte) bool {
	for len(p) > 0 {
		n := min(len(p), wire.Chunk)
		if !k.body.Take(n) || k.send(wire.KindBody, wire.StreamNone, p[:n]) != nil {
			return false
		}
		p = p[n:]
	}
	return true
}

// BodyEnd closes the body.
func (k *Call) BodyEnd() { _ = k.send(wire.KindBodyEnd, wire.StreamNone, nil) }

// Cancel asks the hand to stop the request; the answer still comes.
func (k *Call) Cancel() { _ = k.send(wire.KindCancel, wire.StreamNone, nil) }
