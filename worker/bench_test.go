package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/agent"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/sandbox"
	"cairn/server/gateway"
	"cairn/worker"
)

// bench is one installation: a database, a gateway on loopback, and the folder of its workers.
type bench struct {
	t       *testing.T
	base    *dbtest.Database
	d       *db.DB // the server's
	team    dbtest.Team
	data    string
	gateway string
	log     syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

const (
	testParent = "cairn-test"
	crashTTL   = 3 * time.Second // of workers that are killed, and of their heirs; all others keep the default
)

func testSlots() string { return filepath.Join(os.TempDir(), "cairn-test-slots") }

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("needs root: run the tests of worker as root")
		}
		t.Skip("needs root")
	}
}

func newBench(t *testing.T, models ...gateway.Model) *bench { return newPacedBench(t, 0, models...) }

func newPacedBench(t *testing.T, pause time.Duration, models ...gateway.Model) *bench {
	t.Helper()
	needRoot(t)
	b := &bench{t: t, base: dbtest.New(t), data: t.TempDir()}
	b.d = b.base.Open(t, dbtest.Server)
	b.team = dbtest.NewTeam(t, b.d, "demo")
	g, err := gateway.New(gateway.Config{
		Authorize: gateway.RunTokens{Key: b.base.Keys.RunTokenKey(), Now: time.Now, StillRunning: b.stillRunning},
		Models:    models, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), DemoPause: pause,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	b.gateway = server.URL + "/gateway"
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		g.Close()
		if t.Failed() {
			t.Logf("workers said:\n%s", b.log.String())
		}
	})
	return b
}

func (b *bench) stillRunning(ctx context.Context, id string, epoch int64) error {
	parsed, err := event.ParseID(id)
	if err != nil {
		return fmt.Errorf("%w: %w", gateway.ErrUnauthorized, err)
	}
	row, err := b.d.Read().RunByID(ctx, parsed)
	if err != nil {
		return err
	}
	if row.Epoch != epoch || row.State != "starting" && row.State != "running" {
		return gateway.ErrFenced
	}
	return nil
}

// options are those of a worker of this bench in this process.
func (b *bench) options(name string) worker.Options {
	native := sandbox.NewNative(sandbox.Options{HandPath: handProgram, SlotDir: testSlots(), Parent: testParent})
	b.t.Cleanup(func() { native.Close() })
	return worker.Options{
		DB: b.base.Open(b.t, dbtest.Worker), Sandboxes: native, CgroupParent: testParent, DataDir: b.data, Gateway: b.gateway,
		Name: name, Host: "test-host", DrainGrace: 300 * time.Millisecond, ModelBackoff: 5 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(&b.log, nil)),
	}
}

// work starts a worker and returns what drains it and waits.
func (b *bench) work(name string, change ...func(*worker.Options)) (stop func()) {
	b.t.Helper()
	o := b.options(name)
	for _, c := range change {
		c(&o)
	}
	w, err := worker.New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				b.t.Errorf("worker %s: %v", name, err)
			}
		})
	}
	b.t.Cleanup(stop)
	return stop
}

// agent makes an agent with limits; zero keeps the default.
func (b *bench) agent(model string, limits agent.AskedLimits, tools ...string) dbtest.Team {
	b.t.Helper()
	team := b.team
	team.Agent = dbtest.NewID()
	dbtest.Must(b.t, b.d, team.Actor(), agent.Revise{
		Agent: team.Agent, Space: team.Space, DisplayName: "Other Agent", Model: model,
		Instructions: "Do it.", Tools: tools, Limits: limits,
	})
	return team
}

func (b *bench) converse(open conversation.Open) event.ID {
	b.t.Helper()
	open.Conversation, open.Space, open.Title = dbtest.NewID(), b.team.Space, "Test"
	if open.Agent.IsZero() {
		open.Agent = b.team.Agent
	}
	if open.Source.Kind == "" {
		open.Source.Kind = run.SourceNone
	}
	dbtest.Must(b.t, b.d, b.team.Actor(), open)
	return open.Conversation
}

// post answers the run of a new message.
func (b *bench) post(team dbtest.Team, conversationID event.ID, lines ...string) run.Target {
	b.t.Helper()
	posted := team.Post(b.t, b.d, conversationID, strings.Join(lines, "\n"))
	return run.Target{Run: posted.Run, Space: team.Space, Conversation: conversationID}
}

func (b *bench) state(target run.Target) run.State {
	b.t.Helper()
	value, _, err := b.d.Load(context.Background(), target.Stream())
	if err != nil {
		b.t.Fatal(err)
	}
	return value.(run.State)
}

// ends waits for the end of a run, which must be the wanted one.
func (b *bench) ends(target run.Target, want run.Status, within time.Duration) run.State {
	b.t.Helper()
	var state run.State
	b.until(within, func() bool { state = b.state(target); return state.Status.Terminal() }, "the run to end")
	if state.Status != want {
		b.t.Fatalf("run ended as %s %s: %s", state.Status, state.Code, state.Message.Text())
	}
	return state
}

func (b *bench) until(within time.Duration, ready func() bool, what string) {
	b.t.Helper()
	for deadline := time.Now().Add(within); !ready(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited %s for %s", within, what)
		}
	}
}

// events are the run's so far.
func (b *bench) events(target run.Target) []event.Event {
	b.t.Helper()
	records, err := b.d.Stream(context.Background(), target.Run, 0, 10000)
	if err != nil {
		b.t.Fatal(err)
	}
	events := make([]event.Event, len(records))
	for i := range records {
		if events[i], err = b.d.Decode(context.Background(), &records[i]); err != nil {
			b.t.Fatal(err)
		}
	}
	return events
}

func (b *bench) count(target run.Target, kind string) int {
	n := 0
	for _, e := range b.events(target) {
		if e.Kind() == kind {
			n++
		}
	}
	return n
}

// happens waits until the run has n events of a kind.
func (b *bench) happens(target run.Target, kind string, n int) {
	b.t.Helper()
	b.until(20*time.Second, func() bool { return b.count(target, kind) >= n }, fmt.Sprintf("%d x %s", n, kind))
}

// outcomes lists what the calls came to, in order.
func outcomes(state run.State) []string {
	var list []string
	for _, step := range state.Steps {
		for _, call := range step.Calls {
			list = append(list, call.Tool+":"+call.Result.Outcome)
		}
	}
	return list
}

// file reads what a run has in its upper layer.
func (b *bench) file(state run.State, name string) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(state.Sandbox.Upper, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

// has reports whether a run's upper layer has a file with this content by now.
func has(state run.State, name, content string) bool {
	got, err := os.ReadFile(filepath.Join(state.Sandbox.Upper, name))
	return err == nil && string(got) == content
}

// groups lists the control groups of a run that exist.
func groups(target run.Target) []string {
	found, _ := filepath.Glob("/sys/fs/cgroup/*/" + testParent + "/" + target.Run.String() + "*")
	two, _ := filepath.Glob("/sys/fs/cgroup/" + testParent + "/" + target.Run.String() + "*")
	return append(found, two...)
}

func ptr[T any](v T) *T { return &v }
