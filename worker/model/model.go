// Package model is the agent loop's client of the model gateway: one request,
// one streamed answer, put together and judged. It knows no provider and holds
// no key but the run token it is given for each call. It may import the
// standard library and domain; never server.
//
// One call:
//
//	asked -> answering -> complete: Answer
//	  |          '-> ErrCut          the answer was not recorded, ask again
//	  |-> ErrUnavailable             nothing was answered, ask again later
//	  |-> ErrRefused                 asking again changes nothing
//	  '-> ErrFenced                  the run is no longer ours: stop
//
// An answer is returned whole or not at all; what onDelta was given before an
// error is not part of any answer.
package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Client speaks OpenAI Chat to a gateway. The zero Idle is 11 minutes.
type Client struct {
	BaseURL string        // of the gateway, for instance http://127.0.0.1:8080/gateway
	HTTP    *http.Client  // nil for one of our own; redirects are never followed
	Idle    time.Duration // longest silence of the gateway; it bounds its upstreams' itself
}

// Message is one entry of the conversation.
type Message struct {
	Role    string // system, user, assistant or tool
	Content string
	Calls   []Call // of an assistant
	CallID  string // of a tool result: the call it answers
}

// Tool is what the model may call. Parameters is a JSON Schema object.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// Request asks for the next answer. Step makes the ids of calls for which the
// provider gave none: call_<step>_<index>, the same whenever it is asked again.
type Request struct {
	Model     string
	Messages  []Message
	Tools     []Tool
	MaxTokens int // zero: the provider's own limit
	Step      int
}

// Call is a tool call. Arguments is the text the model wrote, {} if it wrote
// none; Invalid says that it is not a JSON object, so that the model can be told.
type Call struct {
	ID        string
	Name      string
	Arguments string
	Invalid   bool
}

// Usage is what the provider counted, in its tokens. Nil is unknown.
type Usage struct {
	InputTokens  *int64
	OutputTokens *int64
}

// Answer is complete. Finish is the provider's word (stop, tool_calls, length,
// …) or "" when it gave none: go by Calls, and by "length" for a text cut short.
type Answer struct {
	Text   string
	Calls  []Call
	Finish string
	Usage  *Usage // nil: the provider sent no counts
}

// Delta is a piece of the answer as it comes: text, or a piece of a call.
type Delta struct {
	Text string
	Call *CallDelta
}

// CallDelta is a piece of the call at Index of Answer.Calls. Name is set in the first.
type CallDelta struct {
	Index     int
	Name      string
	Arguments string
}

const standardIdle = 11 * time.Minute // the gateway's own standard limit of a call is ten

// ownHTTP keeps no proxy: the gateway is ours and near.
var ownHTTP = &http.Client{Transport: &http.Transport{
	DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
	TLSHandshakeTimeout: 10 * time.Second,
	ForceAttemptHTTP2:   true,
	DisableCompression:  true,
	MaxIdleConnsPerHost: 32,
	IdleConnTimeout:     60 * time.Second,
}}

var errSilent = errors.New("the gateway was silent for too long")

// Stream asks once and reads the answer to its end. onDelta may be nil; it runs
// on the caller's goroutine and must not block. Errors are *Error, except that
// a cancelled ctx comes back as its cause.
func (c *Client) Stream(ctx context.Context, token string, r Request, onDelta func(Delta)) (Answer, error) {
	body, err := encode(r)
	if err != nil {
		return Answer{}, &Error{Kind: ErrRefused, Code: "request_not_encodable", Err: err}
	}
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := c.Idle
	if idle <= 0 {
		idle = standardIdle
	}
	alarm := time.AfterFunc(idle, func() { cancel(errSilent) })
	defer alarm.Stop()

	resp, err := c.post(call, token, body)
	if err != nil {
		return Answer{}, outer(ctx, call, err)
	}
	defer resp.Body.Close()
	alarm.Reset(idle)
	answer := newAssembly(r.Step, onDelta)
	if err := readStream(resp.Body, func() { alarm.Reset(idle) }, answer.event); err != nil {
		return Answer{}, outer(ctx, call, err)
	}
	return answer.complete(), nil
}

func (c *Client) post(ctx context.Context, token string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.BaseURL, "/")+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Kind: ErrRefused, Code: "bad_gateway_address", Err: err}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.http().Do(req)
	if err != nil {
		return nil, &Error{Kind: ErrUnavailable, Code: "gateway_unreachable", Err: err}
	}
	if media := resp.Header.Get("Content-Type"); resp.StatusCode == http.StatusOK && !strings.HasPrefix(media, "text/event-stream") {
		resp.Body.Close()
		return nil, &Error{Kind: ErrRefused, Status: resp.StatusCode, Code: "not_a_gateway", Err: fmt.Errorf("the answer is %q, not an event stream", media)}
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp, nil
}

// http never follows redirects: the run token goes to the gateway alone.
func (c *Client) http() *http.Client {
	base := c.HTTP
	if base == nil {
		base = ownHTTP
	}
	own := *base
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// outer gives the caller's own cancellation back as such, and names our clock.
func outer(ctx, call context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("model call: %w", context.Cause(ctx))
	}
	var e *Error
	if errors.Is(context.Cause(call), errSilent) && errors.As(err, &e) {
		e.Code, e.Err = "gateway_silent", errSilent
	}
	return err
}
