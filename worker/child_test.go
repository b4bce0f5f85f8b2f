package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/db/projection"
	"cairn/domain/event"
	"cairn/sandbox"
	"cairn/worker"
)

// childEnv makes the test binary a process of its own: a worker, or a poster of messages.
const childEnv = "CAIRN_WORKER_TEST_CHILD"

// childPlan is what a child process does, and where it dies.
type childPlan struct {
	URL, KeyDir, BlobDir, Data, Gateway, Hand string
	Name                                      string
	Queues                                    []string

	DieAt     string        // kind of event: killed while its append is made...
	DieNumber int64         // ...for this occurrence...
	DieSent   bool          // ...after it was sent, at some moment; else before the first byte
	DiePrep   time.Duration // killed so long after the preparation of a sandbox began

	Post         int // number of messages to post instead of working
	Team         dbtest.Team
	Conversation event.ID
}

func die() { syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// dying wraps the projector, which sees every event between its decision and its append.
func dying[Q any](plan childPlan, next func(context.Context, Q, *event.Record, event.Event) error) func(context.Context, Q, *event.Record, event.Event) error {
	var seen atomic.Int64
	return func(ctx context.Context, q Q, r *event.Record, e event.Event) error {
		if r.Kind == plan.DieAt && seen.Add(1) == plan.DieNumber {
			if !plan.DieSent {
				die()
			}
			go func() {
				time.Sleep(time.Duration(rand.Int64N(int64(3 * time.Millisecond))))
				die()
			}()
		}
		return next(ctx, q, r, e)
	}
}

// dyingSandboxes are killed with their process while they are prepared.
type dyingSandboxes struct {
	*sandbox.Native
	after time.Duration
}

func (d dyingSandboxes) Prepare(ctx context.Context, spec sandbox.Spec) (*sandbox.Instance, error) {
	time.AfterFunc(d.after, die)
	return d.Native.Prepare(ctx, spec)
}

func child(text string) int {
	var plan childPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := plan.do(); err != nil {
		fmt.Fprintln(os.Stderr, plan.Name, err)
		return 1
	}
	return 0
}

func (plan childPlan) do() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	keys, err := db.LoadKeyring(plan.KeyDir, false)
	if err != nil {
		return err
	}
	blobs, err := db.OpenBlobStore(plan.BlobDir)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	o := db.Options{URL: plan.URL, Name: plan.Name, Keys: keys, Blobs: blobs, Log: log}
	if plan.DieAt != "" {
		o.Project = dying(plan, projection.Apply)
	}
	d, err := db.Open(ctx, o)
	if err != nil {
		return err
	}
	defer d.Close()
	if plan.Post > 0 {
		return plan.post(ctx, d)
	}
	native := sandbox.NewNative(sandbox.Options{HandPath: plan.Hand, SlotDir: testSlots(), Parent: testParent})
	defer native.Close()
	options := worker.Options{
		DB: d, Sandboxes: native, CgroupParent: testParent, DataDir: plan.Data, Gateway: plan.Gateway, Name: plan.Name, Host: "test-host",
		Queues: plan.Queues, LeaseTTL: crashTTL, DrainGrace: 300 * time.Millisecond, ModelBackoff: 5 * time.Millisecond, Log: log,
	}
	if plan.DiePrep > 0 {
		options.Sandboxes = dyingSandboxes{native, plan.DiePrep}
	}
	w, err := worker.New(options)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func (plan childPlan) post(ctx context.Context, d *db.DB) error {
	for i := range plan.Post {
		message := plan.Team.Message(plan.Conversation, fmt.Sprintf("%s %d", plan.Name, i))
		if _, err := d.Execute(ctx, message, dbtest.Meta(plan.Team.Actor())); err != nil {
			return err
		}
	}
	return nil
}

// spawned is a child process of a test.
type spawned struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}
}

// spawn starts a child; it is killed when the test ends.
func (b *bench) spawn(plan childPlan) *spawned {
	b.t.Helper()
	role := dbtest.Worker
	if plan.Post > 0 {
		role = dbtest.Server
	}
	plan.URL, plan.KeyDir, plan.BlobDir, plan.Data, plan.Gateway, plan.Hand = b.base.URL(role), b.base.KeyDir, b.base.BlobDir, b.data, b.gateway, handProgram
	text, err := json.Marshal(plan)
	if err != nil {
		b.t.Fatal(err)
	}
	s := &spawned{t: b.t, cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	s.cmd.Stdout, s.cmd.Stderr = &b.log, &b.log
	if err := s.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.done)
	}()
	b.t.Cleanup(func() {
		s.signal(syscall.SIGCONT)
		s.signal(syscall.SIGKILL)
		<-s.done
	})
	return s
}

func (s *spawned) signal(sig syscall.Signal) { _ = s.cmd.Process.Signal(sig) }

// killed waits until the child has died by SIGKILL.
func (s *spawned) killed() {
	s.t.Helper()
	s.ended(20 * time.Second)
	if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		s.t.Fatalf("child ended as %v, want killed", s.cmd.ProcessState)
	}
}

func (s *spawned) ended(within time.Duration) {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(within):
		s.t.Fatal("the child process does not end")
	}
}
