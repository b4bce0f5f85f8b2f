package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// The kinds of Error, told apart with errors.Is.
var (
	ErrUnavailable = errors.New("no answer from the model")        // ask again later
	ErrCut         = errors.New("the model's answer was cut")      // ask again
	ErrRefused     = errors.New("the model call was refused")      // asking again changes nothing
	ErrFenced      = errors.New("the run belongs to someone else") // stop at once
)

// Error is why there is no answer. Code is the gateway's stable code, or one of
// gateway_unreachable, gateway_silent, gateway_cut, not_a_gateway,
// bad_gateway_address, request_not_encodable, answer_too_large,
// answer_not_readable, when there is none of the gateway's.
type Error struct {
	Kind       error
	Status     int // of HTTP; zero: none, or 200 and cut later
	Code       string
	Message    string         // for people; may quote the provider, so it is sealed content
	RetryAfter *time.Duration // nil: none was named
	Err        error
}

func (e *Error) Error() string {
	text := e.Kind.Error()
	if e.Status != 0 {
		text += fmt.Sprintf(": status %d", e.Status)
	}
	if e.Code != "" {
		text += ": " + e.Code
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap makes errors.Is find the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Retryable says whether the same request may succeed later.
func (e *Error) Retryable() bool { return e.Kind == ErrUnavailable || e.Kind == ErrCut }

const (
	maxRefusal = 64 << 10 // bytes of an error body
	codeFenced = "run_fenced"
)

type wireError struct {
	Message   string `json:"message"`
	Code      string `json:"code"`
	Retryable *bool  `json:"retryable"`
}

// refusal goes by what the gateway says, and by the status where something
// between us and it has answered.
func refusal(resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header)}
	var body struct {
		Error wireError `json:"error"`
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		e.Err = err
	}
	if json.Unmarshal(raw, &body) != nil {
		body.Error = wireError{}
	}
	e.Code, e.Message = body.Error.Code, body.Error.Message
	retryable := resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout
	if body.Error.Retryable != nil {
		retryable = *body.Error.Retryable
	}
	switch {
	case e.Code == codeFenced:
		e.Kind = ErrFenced
	case retryable:
		e.Kind = ErrUnavailable
	default:
		e.Kind = ErrRefused
	}
	return e
}

// midStream is an error event inside an answer.
func midStream(raw json.RawMessage) *Error {
	var w wireError
	e := &Error{Kind: ErrCut}
	if json.Unmarshal(raw, &w) != nil {
		return e
	}
	e.Code, e.Message = w.Code, w.Message
	if w.Retryable != nil && !*w.Retryable {
		e.Kind = ErrRefused
	}
	return e
}

// retryAfter reads seconds, the only form the gateway sends.
func retryAfter(h http.Header) *time.Duration {
	seconds, err := strconv.ParseInt(h.Get("Retry-After"), 10, 32)
	if err != nil || seconds < 0 {
		return nil
	}
	d := time.Duration(seconds) * time.Second
	return &d
}
