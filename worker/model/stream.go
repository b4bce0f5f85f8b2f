package model

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	maxAnswer = 8 << 20  // bytes of text, names and arguments of one answer
	maxCalls  = 1000     // of one answer
	maxWire   = 96 << 20 // bytes of the stream that carries it
	maxLine   = 8 << 20  // bytes of one event
)

// readStream reads what the gateway sends: events of one data line each, the
// last of them [DONE]. (A provider's stream is freer; the gateway reads those
// itself, and the two rooms share nothing but this wire.) A stream that ends
// otherwise was cut. alive is called for every line.
func readStream(body io.Reader, alive func(), event func(data []byte) error) error {
	limited := &io.LimitedReader{R: body, N: maxWire + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 16<<10), maxLine)
	for lines.Scan() {
		alive()
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // empty lines, comments, names of events
		}
		data = bytes.TrimSpace(data)
		if string(data) == "[DONE]" {
			return nil
		}
		if err := event(data); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(lines.Err(), bufio.ErrTooLong):
		return tooLarge("a line", maxLine)
	case limited.N <= 0:
		return tooLarge("the stream", maxWire)
	case lines.Err() != nil:
		return &Error{Kind: ErrCut, Code: "gateway_cut", Err: lines.Err()}
	}
	return &Error{Kind: ErrCut, Code: "gateway_cut", Err: io.ErrUnexpectedEOF}
}

func tooLarge(what string, limit int) *Error {
	return &Error{Kind: ErrRefused, Code: "answer_too_large", Err: fmt.Errorf("%s is larger than %d bytes", what, limit)}
}
