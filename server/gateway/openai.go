package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// openAI is an upstream at any address that speaks OpenAI Chat.
type openAI struct {
	model   Model
	client  *http.Client
	retries retries
}

func newOpenAI(m Model) *openAI {
	return &openAI{model: m, client: newClient(), retries: standardRetries}
}

func (u *openAI) closeIdle() { u.client.CloseIdleConnections() }

var (
	errSilent  = errors.New("the model's server was silent for too long")
	errTooLong = errors.New("the call took too long")
)

// Stream bounds the whole call by Timeout and every silence by Idle.
func (u *openAI) Stream(ctx context.Context, r Request, emit func(Chunk) error) error {
	body, err := u.body(r)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeoutCause(ctx, u.model.Timeout, errTooLong)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := newAlarm(u.model.Idle, func() { cancel(errSilent) })
	defer alarm.stop()
	if !r.Stream { // says nothing until it is complete
		alarm.limit = u.model.Timeout
	}
	resp, err := u.open(ctx, body, r.Stream, alarm)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if !r.Stream {
		return u.whole(ctx, resp, emit)
	}
	return u.chunks(ctx, resp, alarm, emit)
}

// body is the caller's, with the provider's name of the model and, when
// streamed, with the counts asked for: they are recorded for every call.
func (u *openAI) body(r Request) ([]byte, error) {
	out := make(map[string]json.RawMessage, len(r.Body)+1)
	for name, value := range r.Body {
		out[name] = value
	}
	name, err := encode(u.model.Upstream)
	if err != nil {
		return nil, err
	}
	out["model"] = name
	if r.Stream {
		options := map[string]json.RawMessage{}
		if isSet(r.Body["stream_options"]) {
			if err := json.Unmarshal(r.Body["stream_options"], &options); err != nil {
				return nil, err
			}
		}
		options["include_usage"] = json.RawMessage("true")
		if out["stream_options"], err = encode(options); err != nil {
			return nil, err
		}
	}
	return encode(out)
}

// open tries until an answer begins, or trying again makes no sense.
func (u *openAI) open(ctx context.Context, body []byte, stream bool, alarm *alarm) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		alarm.kick()
		resp, p := u.send(ctx, body, stream)
		if p == nil {
			alarm.kick()
			return resp, nil
		}
		alarm.stop()
		pause, again := u.retries.wait(attempt, p)
		if !again {
			return nil, p
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, p // the last thing the upstream said tells more than our clock
		}
	}
}

func (u *openAI) send(ctx context.Context, body []byte, stream bool) (*http.Response, *problem) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.model.BaseURL+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, unreachable(err, false)
	}
	for name, value := range u.model.Headers {
		req.Header.Set(name, value)
	}
	want := "application/json"
	if stream {
		want = "text/event-stream"
	}
	req.Header.Set("User-Agent", "cairn-gateway")
	req.Header.Set("Accept", want)
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("Content-Type", "application/json")
	if u.model.Key.known() {
		req.Header.Set("Authorization", "Bearer "+u.model.Key.reveal())
	}
	resp, err := u.client.Do(req)
	if err != nil {
		return nil, u.transportProblem(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, u.refusal(resp)
	}
	if p := checkMedia(resp.Header, want); p != nil {
		resp.Body.Close()
		return nil, p
	}
	return resp, nil
}

// whole passes on an answer that is not streamed.
func (u *openAI) whole(ctx context.Context, resp *http.Response, emit func(Chunk) error) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return u.cut(ctx, err)
	}
	if len(raw) > maxAnswer {
		return tooLarge("the answer", maxAnswer)
	}
	chunk, err := u.chunk(raw)
	if err != nil {
		return err
	}
	if len(chunk.finished) == 0 {
		return badAnswer("it has no choices")
	}
	return emit(chunk)
}

// chunks passes on a streamed answer and holds it to its end: [DONE], or a
// clean close after every choice has finished.
func (u *openAI) chunks(ctx context.Context, resp *http.Response, alarm *alarm, emit func(Chunk) error) error {
	guard, finished := newGuard(u.model.Key), map[int]bool{}
	release := func(ready []Chunk) error {
		for _, c := range ready {
			if err := emit(c); err != nil {
				return err
			}
		}
		return nil
	}
	done, err := readEvents(resp.Body, alarm.kick, func(data []byte) error {
		chunk, err := u.chunk(bytes.Clone(data))
		if err != nil {
			return err
		}
		for index, end := range chunk.finished {
			finished[index] = finished[index] || end
		}
		ready, err := guard.pass(chunk)
		if err != nil {
			return err
		}
		return release(ready)
	})
	switch {
	case err != nil && !isProblem(err):
		return u.cut(ctx, err)
	case err != nil:
		return err
	case !done && !allTrue(finished):
		return u.cut(ctx, io.ErrUnexpectedEOF)
	}
	return release(guard.rest())
}

// chunk reads one object of the answer, without the key.
func (u *openAI) chunk(raw []byte) (Chunk, error) {
	clean, err := u.model.Key.redactJSON(raw)
	if err != nil {
		return Chunk{}, badAnswer("a part of it is not JSON")
	}
	chunk, err := newChunk(clean)
	if err != nil {
		return chunk, badAnswer(err.Error())
	}
	if chunk.failure != nil {
		return chunk, u.faultProblem(*chunk.failure)
	}
	return chunk, nil
}

func isProblem(err error) bool {
	var p *problem
	return errors.As(err, &p)
}

// allTrue is false for an answer that named no choice at all.
func allTrue(m map[int]bool) bool {
	for _, v := range m {
		if !v {
			return false
		}
	}
	return len(m) > 0
}
