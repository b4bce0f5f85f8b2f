package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/riverqueue/river"

	"cairn/db"
	"cairn/domain/check"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/sandbox"
	"cairn/sandbox/egress"
	"cairn/worker/harness"
	"cairn/worker/model"
	"cairn/worker/workspace"
)

// Options are what a worker is made of. DB, Sandboxes, DataDir and Gateway are required.
type Options struct {
	DB        *db.DB
	Sandboxes workspace.Sandboxes // a *sandbox.Native
	DataDir   string              // absolute; files of runs lie in DataDir/run, of sources in DataDir/layer
	Gateway   string              // address of the model gateway, such as http://127.0.0.1:8080/gateway

	Name   string   // unique among the workers that live; empty: host, process and time
	Host   string   // unique among the hosts and lasting; empty: the host's name
	Queues []string // empty: the default queue
	Slots  int      // runs at once, for each queue; 0: 8

	Roots         map[string]string // name -> folder that runs may start from
	Tools         []string          // tool chains that runs may mount read-only
	Env           map[string]string // of every program in a sandbox
	Offline       map[string]string // also, where there is no way out
	EgressCeiling egress.Tier       // most that a run may reach; empty: none
	SandboxLimits sandbox.Limits
	Grade         sandbox.Grade     // the lowest that is accepted; empty: C, unless Require names controls
	Require       []sandbox.Control // controls beyond those of the grade
	CgroupParent  string            // that Sandboxes was made with; empty: cairn

	LeaseTTL      time.Duration // 0: 15 s
	DrainGrace    time.Duration // how long a call may go on when the worker drains; 0: 10 s
	ModelAttempts int           // of one model call; 0: 6
	ModelBackoff  time.Duration // after the first failed attempt, doubled after each; 0: 500 ms

	OnDelta func(harness.Delta) // for a live view; called by many runs at once; must not block; may be nil
	Log     *slog.Logger        // nil: slog.Default()
}

func (o Options) complete() (Options, error) {
	if o.DB == nil || o.Sandboxes == nil || o.Gateway == "" || !filepath.IsAbs(o.DataDir) {
		return o, errors.New("worker: DB, Sandboxes, Gateway and an absolute DataDir are required")
	}
	host, err := os.Hostname()
	if err != nil && o.Host == "" {
		return o, fmt.Errorf("worker: the host has no name, give one: %w", err)
	}
	setDefault(&o.Host, host)
	setDefault(&o.Name, fmt.Sprintf("%s-%d-%d", o.Host, os.Getpid(), time.Now().UnixMilli()))
	setDefault(&o.Slots, 8)
	setDefault(&o.CgroupParent, "cairn")
	setDefault(&o.LeaseTTL, 15*time.Second)
	setDefault(&o.DrainGrace, 10*time.Second)
	setDefault(&o.ModelAttempts, 6)
	setDefault(&o.ModelBackoff, 500*time.Millisecond)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if len(o.Queues) == 0 {
		o.Queues = []string{conversation.DefaultQueue}
	}
	return o, o.check()
}

func setDefault[T comparable](option *T, value T) {
	var zero T
	if *option == zero {
		*option = value
	}
}

func (o Options) check() error {
	err := check.First(check.Name("name", o.Name, 128), check.Name("host", o.Host, 255),
		check.Range("slots", int64(o.Slots), 1, 1000), check.Range("lease_ttl_ms", o.LeaseTTL.Milliseconds(), 200, 600_000),
		check.Range("drain_grace_ms", o.DrainGrace.Milliseconds(), 1, 3_600_000), check.Range("model_attempts", int64(o.ModelAttempts), 1, 100))
	for _, queue := range o.Queues {
		err = check.First(err, check.Code("queue", queue))
	}
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

func (o Options) queues() map[string]river.QueueConfig {
	queues := map[string]river.QueueConfig{}
	for _, queue := range o.Queues {
		queues[queue] = river.QueueConfig{MaxWorkers: o.Slots}
	}
	return queues
}

func (o Options) harness(log *slog.Logger) harness.Options {
	return harness.Options{
		DB: o.DB, Model: &model.Client{BaseURL: o.Gateway}, Worker: o.Name,
		Attempts: o.ModelAttempts, Backoff: o.ModelBackoff, OnDelta: o.OnDelta, Log: log,
		Workspaces: workspace.Config{
			Sandboxes: o.Sandboxes, CgroupParent: o.CgroupParent, Dir: filepath.Join(o.DataDir, "run"), Host: o.Host,
			Layers: filepath.Join(o.DataDir, "layer"), Contents: o.DB,
			Roots: o.Roots, Tools: o.Tools, Env: o.Env, Offline: o.Offline, EgressCeiling: o.EgressCeiling, Limits: o.SandboxLimits, Grade: o.Grade, Require: o.Require,
			Waiting: func(run event.ID, err error) { log.Warn("a sandbox must wait", "run", run, "error", err) },
		},
	}
}
