package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"
)

const maxRequest = 8 << 20 // bytes of a request body

// Request is one chat completion as the caller sent it.
type Request struct {
	Model     string                     // the name the caller used
	Stream    bool                       // answer in chunks
	WantUsage bool                       // the caller asked for the chunk with the counts
	Body      map[string]json.RawMessage // every field, known to us or not
}

// readRequest bounds the body in size and in time.
func readRequest(w http.ResponseWriter, r *http.Request, within time.Duration) (Request, *problem) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return Request{}, &problem{
			status: http.StatusUnsupportedMediaType, code: codeEncoding, kind: "invalid_request_error",
			message: fmt.Sprintf("Content-Encoding %q is not taken. Send the body uncompressed.", coding),
		}
	}
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return Request{}, invalid("", "Content-Type %q is not taken. Send application/json.", kind)
		}
	}
	// The server takes the deadline away itself once the body has come to its end.
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(within)); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return Request{}, &problem{status: http.StatusInternalServerError, code: codeInternalError, kind: "api_error", message: "The connection is broken.", cause: err}
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return Request{}, unreadable(err, within)
	}
	return parseRequest(raw)
}

func unreadable(err error, within time.Duration) *problem {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &problem{
			status: http.StatusRequestEntityTooLarge, code: codeTooLarge, kind: "invalid_request_error",
			message: fmt.Sprintf("The request body is larger than %d bytes.", maxRequest),
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &problem{
			status: http.StatusRequestTimeout, code: codeSlowRequest, kind: "invalid_request_error", retryable: true,
			message: fmt.Sprintf("The request body did not arrive within %v.", within),
		}
	}
	return &problem{
		status: http.StatusBadRequest, code: codeInvalid, kind: "invalid_request_error", retryable: true,
		message: "The request body could not be read to its end.", cause: err,
	}
}

// parseRequest checks what the gateway itself relies on and names the field
// that is wrong. All else is the upstream's to judge.
func parseRequest(raw []byte) (Request, *problem) {
	var r Request
	if err := json.Unmarshal(raw, &r.Body); err != nil || r.Body == nil {
		return r, notJSON(raw, err)
	}
	if json.Unmarshal(r.Body["model"], &r.Model) != nil || r.Model == "" {
		return r, invalid("model", "model must be the name of a model.")
	}
	if isSet(r.Body["stream"]) && json.Unmarshal(r.Body["stream"], &r.Stream) != nil {
		return r, invalid("stream", "stream must be true or false.")
	}
	var p *problem
	if r.WantUsage, p = parseStreamOptions(r.Body["stream_options"], r.Stream); p != nil {
		return r, p
	}
	if p := checkMessages(r.Body["messages"]); p != nil {
		return r, p
	}
	return r, checkTools(r.Body["tools"])
}

func notJSON(raw []byte, err error) *problem {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return invalid("", "The body is not JSON: byte %d: %v.", syntax.Offset, syntax)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return invalid("", "The body is empty.")
	}
	return invalid("", "The body must be a JSON object.")
}

func parseStreamOptions(raw json.RawMessage, stream bool) (wantUsage bool, p *problem) {
	if !isSet(raw) {
		return false, nil
	}
	var options map[string]json.RawMessage
	if json.Unmarshal(raw, &options) != nil {
		return false, invalid("stream_options", "stream_options must be an object.")
	}
	if !stream {
		return false, invalid("stream_options", "stream_options is allowed only with stream: true.")
	}
	usage := options["include_usage"]
	if isSet(usage) && json.Unmarshal(usage, &wantUsage) != nil {
		return false, invalid("stream_options.include_usage", "stream_options.include_usage must be true or false.")
	}
	return wantUsage, nil
}

func checkMessages(raw json.RawMessage) *problem {
	var messages []map[string]json.RawMessage
	if !isSet(raw) || json.Unmarshal(raw, &messages) != nil || len(messages) == 0 {
		return invalid("messages", "messages must be a list of objects with at least one entry.")
	}
	for i, message := range messages {
		var role string
		if json.Unmarshal(message["role"], &role) != nil || role == "" {
			return invalid(fmt.Sprintf("messages[%d].role", i), "messages[%d].role must be a text such as user.", i)
		}
		if content := message["content"]; isSet(content) && content[0] != '"' && content[0] != '[' {
			return invalid(fmt.Sprintf("messages[%d].content", i), "messages[%d].content must be a text, a list of parts, or null.", i)
		}
	}
	return nil
}

func checkTools(raw json.RawMessage) *problem {
	if !isSet(raw) {
		return nil
	}
	var tools []json.RawMessage
	if json.Unmarshal(raw, &tools) != nil {
		return invalid("tools", "tools must be a list.")
	}
	for i, tool := range tools {
		var object map[string]json.RawMessage
		if json.Unmarshal(tool, &object) != nil || object == nil {
			return invalid(fmt.Sprintf("tools[%d]", i), "tools[%d] must be an object.", i)
		}
	}
	return nil
}
