// Package wire is the framed protocol between the worker and the hand, the
// small process that serves tool requests inside a sandbox. Both sides use
// it; it imports the standard library only and knows no system call.
//
// A frame is a 16-byte header and a payload of at most [MaxPayload] bytes:
//
//	0..3   payload length, big endian, bytes
//	4      protocol version ([Version])
//	5      kind ([Kind])
//	6      stream (0 none, 1 standard output or file content, 2 standard error)
//	7      reserved, zero
//	8..15  request id, big endian, chosen by the worker, never reused, 0 for set-up
//
// Life of one request, with credit in both directions so that a slow reader
// slows its own writer and nobody else:
//
//	worker                         hand
//	Request ---------------------> (starts)
//	Body... BodyEnd -------------> (standard input, file content)
//	        <--------------------- Credit (n bytes of Body were consumed)
//	        <--------------------- Data... (at most Window bytes without Credit)
//	Credit ----------------------> (n bytes of Data were consumed)
//	Cancel ----------------------> (kills every process but the hand)
//	        <--------------------- Done | Fail  (exactly one; the id is then unknown)
//
// The worker treats what the hand sends as hostile: any frame outside this
// description ends the connection.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of the protocol, in bytes.
const (
	Version    = 1
	HeaderSize = 16
	MaxPayload = 1 << 20   // one frame
	Chunk      = 64 << 10  // what a sender puts into one Data or Body frame
	Window     = 256 << 10 // unacknowledged bytes per stream and direction
)

// Kind says what a frame is.
type Kind uint8

// Kinds sent by the worker (below 16) and by the hand (from 16 on). Credit is
// sent by both and has one number for each direction.
const (
	KindSetup   Kind = 1
	KindRequest Kind = 2
	KindBody    Kind = 3
	KindBodyEnd Kind = 4
	KindCancel  Kind = 5
	KindCredit  Kind = 6

	KindReady      Kind = 16
	KindData       Kind = 17
	KindDone       Kind = 18
	KindFail       Kind = 19
	KindBodyCredit Kind = 20
)

// Streams of a Data frame.
const (
	StreamNone   uint8 = 0
	StreamOutput uint8 = 1
	StreamError  uint8 = 2
)

// ErrProtocol is wrapped by every error that means "the other side does not
// speak this protocol"; the connection cannot be used any more.
var ErrProtocol = errors.New("sandbox protocol violated")

// Frame is one message.
type Frame struct {
	Kind    Kind
	Stream  uint8
	ID      uint64
	Payload []byte
}

// Append writes the frame to the end of b. It panics when the payload is
// larger than MaxPayload: senders split before.
func (f Frame) Append(b []byte) []byte {
	if len(f.Payload) > MaxPayload {
		panic("wire: payload above MaxPayload")
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.Payload)))
	b = append(b, Version, byte(f.Kind), f.Stream, 0)
	b = binary.BigEndian.AppendUint64(b, f.ID)
	return append(b, f.Payload...)
}

// ReadFrame reads one frame. io.EOF means that the other side closed between
// frames. The payload is freshly allocated, after its length was checked.
func ReadFrame(r io.Reader) (Frame, error) {
	var h [HeaderSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Frame{}, err
	}
	n := binary.BigEndian.Uint32(h[0:4])
	switch {
	case h[4] != Version:
		return Frame{}, fmt.Errorf("%w: version %d, expected %d", ErrProtocol, h[4], Version)
	case h[7] != 0:
		return Frame{}, fmt.Errorf("%w: reserved byte is %d", ErrProtocol, h[7])
	case h[6] > StreamError:
		return Frame{}, fmt.Errorf("%w: stream %d", ErrProtocol, h[6])
	case n > MaxPayload:
		return Frame{}, fmt.Errorf("%w: payload of %d bytes, limit %d", ErrProtocol, n, MaxPayload)
	}
	f := Frame{Kind: Kind(h[5]), Stream: h[6], ID: binary.BigEndian.Uint64(h[8:16])}
	if n > 0 {
		f.Payload = make([]byte, n)
		if _, err := io.ReadFull(r, f.Payload); err != nil {
			return Frame{}, fmt.Errorf("%w: frame cut short: %w", ErrProtocol, io.ErrUnexpectedEOF)
		}
	}
	return f, nil
}
