package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	maxStream = 64 << 20 // bytes of a streamed answer on the wire
	maxEvent  = 4 << 20  // bytes of one line, and of one event
	maxAnswer = 16 << 20 // bytes of an answer that is not streamed
)

// readEvents calls event with the data of each server-sent event, in order,
// until the stream says [DONE] (true) or ends without it (false). alive is
// called for every whole line, comments included: that is what tells a slow
// server from one that feeds bytes to hold a connection.
//
// The dispatch rules are those of the WHATWG specification, with two
// differences: a carriage return alone does not end a line, and names of
// events are ignored, since providers put everything into the data.
func readEvents(body io.Reader, alive func(), event func(data []byte) error) (done bool, err error) {
	limited := &io.LimitedReader{R: body, N: maxStream + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 16<<10), maxEvent)
	var data bytes.Buffer
	filled := false
	for lines.Scan() {
		alive()
		line := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
		if len(line) > 0 {
			value, ok := dataField(line)
			if ok && filled {
				data.WriteByte('\n')
			}
			filled = filled || ok
			data.Write(value)
			if data.Len() > maxEvent {
				return false, tooLarge("an event", maxEvent)
			}
			continue
		}
		if !filled {
			continue
		}
		if isDone(data.Bytes()) {
			return true, nil
		}
		if err := event(data.Bytes()); err != nil {
			return false, err
		}
		data.Reset()
		filled = false
	}
	switch {
	case errors.Is(lines.Err(), bufio.ErrTooLong):
		return false, tooLarge("a line", maxEvent)
	case limited.N <= 0:
		return false, tooLarge("the answer", maxStream)
	case lines.Err() != nil:
		return false, lines.Err()
	}
	// Some servers leave out the empty line after the last event. Any other
	// event without one is incomplete and does not count.
	return filled && isDone(data.Bytes()), nil
}

func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// dataField is false for comments and for the fields event, id and retry.
func dataField(line []byte) ([]byte, bool) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if string(name) != "data" {
		return nil, false
	}
	return bytes.TrimPrefix(value, []byte(" ")), true
}

func tooLarge(what string, limit int) *problem {
	return upstreamProblem(http.StatusBadGateway, codeUpstreamLarge, false,
		"The model's server sent more than the gateway takes: %s is larger than %d bytes.", what, limit)
}

// checkMedia refuses an answer of another kind than the one asked for, before
// any of it is read as one.
func checkMedia(h http.Header, want string) *problem {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), want) {
		return badAnswer(fmt.Sprintf("it came as %q, expected %q", clip(media, 60), want))
	}
	if coding := h.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return badAnswer(fmt.Sprintf("it came compressed (%q), which was not asked for", clip(coding, 20)))
	}
	return nil
}

func badAnswer(why string) *problem {
	return upstreamProblem(http.StatusBadGateway, codeUpstreamInvalid, false,
		"The model's server sent an answer that is not in the OpenAI Chat format: %s.", why)
}
