package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coder/websocket"

	"cairn/db"
	"cairn/db/bench"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/sandbox"
)

// serverGroup names the measurements of REST and the live sockets.
const serverGroup = "server"

const (
	liveRate      = 200     // events a second
	manyRows      = 100_000 // conversations in one space, events in one conversation
	pageRequests  = 200     // of one round
	pageBudgetMS  = 50
	warmPosts     = 10 // of one round
	seedWriters   = 32
	eventsAtOnce  = 500
	benchIdleName = "bench" // the queue that no worker serves
)

// serverBench is a server and a worker, each its own process, on a data folder, with a member who has signed in.
type serverBench struct {
	l      local
	d      *db.DB
	url    string
	client *http.Client
	rounds int
	length time.Duration
}

// benchServer measures what a member waits for, on an installation of its own with fsync on.
func (g *globals) benchServer(ctx context.Context, rounds int, length time.Duration) (results []bench.Result, err error) {
	parent, err := os.MkdirTemp("/var/tmp", "cairn-bench-")
	if err != nil {
		return nil, unavailable(err)
	}
	defer os.RemoveAll(parent)
	if err := os.Chmod(parent, 0o755); err != nil { // PostgreSQL's own account must reach it
		return nil, err
	}
	own := &globals{data: filepath.Join(parent, "data"), quiet: true, output: "text"}
	in, err := own.openInstallation(ctx, true)
	if err != nil {
		return nil, err
	}
	defer in.close(own)
	if err := in.migrate(ctx, own); err != nil {
		return nil, err
	}
	first, err := own.firstLogin(ctx, in)
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	family := own.startFamily(ctx, in, &upFlags{workerFlags: workerFlags{slots: 2, grade: string(sandbox.GradeC)}}, []string{address})
	defer func() {
		family.end()
		if stopped := family.stop(own); err == nil {
			err = stopped
		}
	}()
	if err := family.ready(ctx, []string{address}); err != nil {
		return nil, unavailable(err)
	}
	d, err := in.open(ctx, in.serverURL, "cairn bench", quietLogger(own))
	if err != nil {
		return nil, unavailable(err)
	}
	defer d.Close()
	s := &serverBench{d: d, url: "http://" + address, rounds: rounds, length: length}
	if s.l, err = ensureLocal(ctx, d, "demo"); err != nil {
		return nil, err
	}
	if err := s.signIn(ctx, first); err != nil {
		return nil, err
	}
	for _, measure := range []func(context.Context) ([]bench.Result, error){s.frames, s.firstTool, s.pages} {
		more, err := measure(ctx)
		if err != nil {
			return results, fmt.Errorf("bench %s: %w", serverGroup, err)
		}
		results = append(results, more...)
	}
	return results, nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", unavailable(err)
	}
	return listener.Addr().String(), listener.Close()
}

func (s *serverBench) signIn(ctx context.Context, first *login) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	s.client = &http.Client{Jar: jar, Timeout: 30 * time.Second}
	return s.call(ctx, "POST", "/login", map[string]string{"email": first.Email, "code": first.Code}, nil)
}

// call asks the server and decodes its answer into what into points to; nil: the answer is read and dropped.
func (s *serverBench) call(ctx context.Context, method, path string, body, into any) error {
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+"/api/v1"+path, &content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// open makes a conversation on a queue.
func (s *serverBench) open(ctx context.Context, queue string) (event.ID, error) {
	id := newID()
	_, err := s.d.Execute(ctx, conversation.Open{
		Conversation: id, Space: s.l.space, Agent: s.l.agent, Title: "Bench", Source: run.Source{Kind: run.SourceNone}, Queue: queue,
	}, s.meta(s.l.actor()))
	return id, err
}

func (s *serverBench) meta(actor string) event.Meta { return event.Meta{Actor: actor, At: db.Now()} }

// held is a run that a worker of ours has claimed, to append to.
type held struct {
	stream  event.Ref
	version int64
}

const benchWorker = "bench"

// hold posts a message to a conversation and claims its run.
func (s *serverBench) hold(ctx context.Context, in event.ID) (*held, error) {
	id := newID()
	post := conversation.PostMessage{Conversation: in, Space: s.l.space, Agent: s.l.agent, Message: newID(), Turn: newID(), Run: id, Text: "Go."}
	if _, err := s.d.Execute(ctx, post, s.meta(s.l.actor())); err != nil {
		return nil, err
	}
	start := run.Start{Target: run.Target{Run: id, Space: s.l.space, Conversation: in}, Worker: benchWorker, Host: "here"}
	if _, err := s.d.Execute(ctx, start, s.meta(event.WorkerActor(benchWorker))); err != nil {
		return nil, err
	}
	return &held{stream: run.Stream(id, s.l.space, in), version: 2}, nil
}

func (s *serverBench) append(ctx context.Context, h *held, events ...event.Event) error {
	change := event.Change{Stream: h.stream, Events: events}
	_, err := s.d.Append(ctx, s.meta(event.WorkerActor(benchWorker)), db.Expected{Change: change, Version: h.version})
	h.version += int64(len(events))
	return err
}

func answered(step int64) event.Event {
	tokens := int64(100)
	return run.ModelAnswered{
		Epoch: 1, Step: step, Model: "demo", Text: event.Seal("some words of an answer"), Finish: "stop", DurationUS: 1000,
		Calls: []run.AskedCall{}, Usage: run.Usage{InputTokens: &tokens, OutputTokens: &tokens},
	}
}

// benchViewer is one live socket on a conversation.
type benchViewer struct {
	conn   *websocket.Conn
	mu     sync.Mutex
	seen   map[int64]time.Time // when the event of a version of the run came
	kinds  chan string         // of all events, as they come
	failed error
}

func (s *serverBench) watch(ctx context.Context, topic event.ID) (*benchViewer, error) {
	conn, _, err := websocket.Dial(ctx, s.url+"/api/v1/live", &websocket.DialOptions{HTTPClient: s.client})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(1 << 22)
	v := &benchViewer{conn: conn, seen: map[int64]time.Time{}, kinds: make(chan string, 1<<16)}
	order, _ := json.Marshal(map[string]any{"type": "subscribe", "topic": topic, "after": 0})
	if err := conn.Write(ctx, websocket.MessageText, order); err != nil {
		return nil, err
	}
	go func() {
		defer close(v.kinds)
		for v.failed == nil {
			v.failed = v.read(ctx)
		}
	}()
	return v, nil
}

func (v *benchViewer) read(ctx context.Context) error {
	_, text, err := v.conn.Read(ctx)
	came := time.Now()
	if err != nil {
		return err
	}
	var frames []struct {
		Type, Kind string
		Version    int64
	}
	if err := json.Unmarshal(text, &frames); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range frames {
		if f.Type == "event" || f.Type == "live" {
			v.kinds <- f.Type + " " + f.Kind
		}
		if f.Kind == "run.model_answered" {
			v.seen[f.Version] = came
		}
	}
	return nil
}

// await reads until a frame of the kind came.
func (v *benchViewer) await(ctx context.Context, kind string) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case got, open := <-v.kinds:
			if !open {
				return v.failed
			}
			if got == kind {
				return nil
			}
		}
	}
}
