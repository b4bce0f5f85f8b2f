package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// reply writes one answer: nothing yet -> stream -> closed, or nothing yet ->
// object. It is what knows whether a status can still be chosen.
type reply struct {
	w         http.ResponseWriter
	control   *http.ResponseController
	patience  time.Duration // how long a caller may leave what was sent to it unread
	status    int           // zero: nothing was sent yet
	streaming bool
}

func newReply(w http.ResponseWriter, patience time.Duration) *reply {
	return &reply{w: w, patience: patience, control: http.NewResponseController(w)}
}

// object answers with one JSON value.
func (r *reply) object(value any) *problem {
	raw, err := encode(value)
	if err != nil {
		return &problem{status: http.StatusInternalServerError, code: codeInternalError, kind: "api_error", message: "The answer could not be encoded.", cause: err}
	}
	if err := r.send(http.StatusOK, "application/json", raw); err != nil {
		return callerGone(err)
	}
	return nil
}

// chunk sends one event of the stream, and the headers before the first.
func (r *reply) chunk(raw json.RawMessage) error {
	var line bytes.Buffer
	line.WriteString("data: ")
	// The upstream may break an object over lines; one data line may not.
	if err := json.Compact(&line, raw); err != nil {
		return err
	}
	line.WriteString("\n\n")
	r.streaming = true
	return r.send(http.StatusOK, "text/event-stream", line.Bytes())
}

// done says that the answer is complete.
func (r *reply) done() error {
	r.streaming = true
	return r.send(http.StatusOK, "text/event-stream", []byte("data: [DONE]\n\n"))
}

// fail tells the caller by status while that is possible, else by an event
// after which the stream ends without [DONE].
func (r *reply) fail(p *problem, requestID string) error {
	body := p.body(requestID)
	if r.streaming {
		return r.send(0, "", append(append([]byte("event: error\ndata: "), body...), "\n\n"...))
	}
	p.headers(r.w.Header())
	return r.send(p.status, "application/json", body)
}

func (r *reply) send(status int, media string, data []byte) error {
	if r.status == 0 {
		r.status = status
		r.w.Header().Set("Content-Type", media)
		r.w.Header().Set("Cache-Control", "no-store")
		r.w.WriteHeader(status)
	}
	if err := r.control.SetWriteDeadline(time.Now().Add(r.patience)); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if _, err := r.w.Write(data); err != nil {
		return err
	}
	if err := r.control.Flush(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// callerGone is meant for log and observer. 499 is what nginx writes for it.
func callerGone(cause error) *problem {
	return &problem{status: 499, code: codeCallerGone, kind: "api_error", message: "The caller went away.", cause: cause}
}
