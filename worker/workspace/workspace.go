// Package workspace gives a run the files it works on: it decides what may be mounted, takes the workspace of
// a lost worker over, and prepares the sandbox around it.
//
//	nothing recorded ------------------> fresh upper in DATA/run/ID
//	recorded here, upper there --------> old sandbox killed, run folder locked, same upper
//	recorded on another host, or gone -> *Refusal workspace_lost: never an empty workspace in its stead
//
// Layers, topmost first: the run's own upper, the uppers of what it goes on from (newest first), the source: a folder
// of the host, or the files of a manifest, laid out once for all runs. A conversation goes on from its earlier turns
// that succeeded: what others failed to finish is not among them. A continued task goes on from the attempts before
// it, whatever they came to. Files of those that are out of reach make the run fail with workspace_lost, too.
//
// It may import the standard library, domain and sandbox.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/sandbox"
	"cairn/sandbox/egress"
)

// Sandboxes prepares sandboxes: a *sandbox.Native.
type Sandboxes interface {
	Prepare(ctx context.Context, spec sandbox.Spec) (*sandbox.Instance, error)
}

// Config is what a worker offers. It is not changed after use.
type Config struct {
	Sandboxes    Sandboxes
	CgroupParent string            // that Sandboxes was made with
	Dir          string            // DATA/run: a folder for each run
	Layers       string            // DATA/layer: a folder for each list of files that runs began with
	Contents     Contents          // what such lists name
	Host         string            // unique among the hosts of the installation, and lasting
	Roots        map[string]string // name of a root -> folder; sources lie in one of them
	Tools        []string          // tool chains that may be mounted read-only, and what lies in them
	Env          map[string]string // of every program in a sandbox
	Offline      map[string]string // also, where there is no way out
	Limits       sandbox.Limits
	Grade        sandbox.Grade     // the lowest that is accepted; empty: C, unless Require names controls
	Require      []sandbox.Control // controls beyond those of the grade

	EgressCeiling egress.Tier        // most that a run may reach; empty: none
	OnEgress      func(egress.Batch) // what the sandbox asked for outside; may be nil
	// Waiting is told once when a run folder, or a uid range, is held by somebody else for long.
	Waiting func(run event.ID, err error)
}

// Refusal is why a run cannot have a workspace. Asking again changes nothing, so that the run fails with Code.
type Refusal struct {
	Code    string // run.CodeSandboxRefused, run.CodeWorkspaceLost, run.CodeContentMissing or run.CodeContentErased
	Message string // names the control or rule, the value and the fix
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

func refuse(format string, args ...any) error {
	return &Refusal{Code: run.CodeSandboxRefused, Message: fmt.Sprintf(format, args...)}
}

func lost(format string, args ...any) error {
	return &Refusal{Code: run.CodeWorkspaceLost, Message: fmt.Sprintf(format, args...)}
}

// Check kills what older claims left, and refuses what can be seen before anything is prepared: sources and
// mounts that this worker does not offer, and files that are not here.
func (c Config) Check(ctx context.Context, id event.ID, state run.State) error {
	if err := c.KillOlder(ctx, id, state, state.Epoch); err != nil {
		return refuse("the sandbox that an earlier worker left cannot be killed: %v: start this worker with the same rights, on a host with the same control groups", err)
	}
	if _, err := c.source(state.Source); err != nil {
		return err
	}
	if _, err := c.mounts(state.Mounts); err != nil {
		return err
	}
	if _, err := c.network(state); err != nil {
		return err
	}
	return c.own(id, state)
}

// own refuses a run whose files are out of reach.
func (c Config) own(id event.ID, state run.State) error {
	if state.Sandbox.Epoch == 0 {
		return nil
	}
	return c.reach("run "+id.String(), state.Sandbox)
}

func (c Config) reach(whose string, at run.Sandbox) error {
	if at.Host != c.Host {
		return lost("the files of %s are on host %q, this worker is on %q: bring that host's worker back, or start a new conversation, or retry the task", whose, at.Host, c.Host)
	}
	info, err := os.Lstat(at.Upper)
	if err != nil || !info.IsDir() {
		return lost("the files of %s are not at %s any more (%v): restore the folder from a backup, or start a new conversation, or retry the task", whose, at.Upper, err)
	}
	return nil
}

// Past is an ended run whose files lie beneath: an earlier turn of the conversation that succeeded, or an
// attempt of the task that is continued.
type Past struct {
	Run     event.ID
	Sandbox run.Sandbox
	Epoch   int64 // its last one, when its sandbox may have been left behind; 0: its worker closed it
}

// attempts bounds how often a preparation that broke down is tried again.
const attempts = 3

// patience is how long a held run folder goes unmentioned.
const patience = 5 * time.Second

// Prepare makes the sandbox of a claimed run. A sandbox that an earlier epoch left is killed first. While the
// old worker still lives, frozen or slow, it keeps the run folder's lock: Prepare waits for it until ctx ends,
// since two overlays on one upper would destroy it.
func (c Config) Prepare(ctx context.Context, id, space event.ID, state run.State, past []Past) (*sandbox.Instance, error) {
	spec, err := c.spec(ctx, id, space, state, past)
	if err != nil {
		return nil, err
	}
	if err := c.killPast(ctx, past); err != nil {
		return nil, err
	}
	begin, broken := time.Now(), 0
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		box, err := c.try(ctx, id, state, spec)
		switch {
		case err == nil:
			return box, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, sandbox.ErrBusy) || errors.Is(err, sandbox.ErrNoSlot):
			if c.Waiting != nil && time.Since(begin) > patience {
				c.Waiting(id, err)
				c.Waiting = nil
			}
		default:
			if broken++; broken == attempts || final(err) {
				return nil, refuse("%v", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// killPast ends what may still write into files that are to lie beneath: those must not change any more.
func (c Config) killPast(ctx context.Context, past []Past) error {
	for _, p := range past {
		if p.Epoch == 0 {
			continue
		}
		if err := c.KillOlder(ctx, p.Run, run.State{Sandbox: p.Sandbox}, p.Epoch+1); err != nil {
			return refuse("the sandbox that a worker of earlier run %s left cannot be killed: %v: start this worker with the same rights, on a host with the same control groups", p.Run, err)
		}
	}
	return nil
}

func final(err error) bool {
	_, refused := errors.AsType[*sandbox.RefusedError](err)
	return refused
}

func (c Config) try(ctx context.Context, id event.ID, state run.State, spec sandbox.Spec) (*sandbox.Instance, error) {
	if err := c.KillOlder(ctx, id, state, state.Epoch); err != nil {
		return nil, err
	}
	if state.Sandbox.Epoch == 0 {
		c.clearHalfMade(spec.RunDir)
	}
	box, err := c.Sandboxes.Prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	if want := c.group(id, state.Epoch); box.Cgroup() != "" && box.Cgroup() != want {
		err := fmt.Errorf("the sandbox is in cgroup %q, want %q: give the worker the parent that its sandboxes have", box.Cgroup(), want)
		return nil, errors.Join(err, box.Close())
	}
	return box, nil
}

// name is the sandbox of one epoch. The epoch is in it so that a worker which wakes up late can only ever
// kill sandboxes of claims that are over.
func name(id event.ID, epoch int64) string { return fmt.Sprintf("%s-%d", id, epoch) }

func (c Config) group(id event.ID, epoch int64) string {
	return "/" + filepath.Join(c.CgroupParent, name(id, epoch))
}

// KillOlder kills what the claims before an epoch left on this host: the recorded sandbox, and those that were
// being prepared when their worker was lost. Whatever is older than the record was killed by the worker that
// made it.
func (c Config) KillOlder(ctx context.Context, id event.ID, state run.State, before int64) error {
	if at := state.Sandbox; at.Epoch != 0 && at.Epoch < before && at.Host == c.Host && at.Cgroup != "" {
		if err := sandbox.KillGroup(ctx, at.Cgroup); err != nil {
			return err
		}
	}
	for epoch := state.Sandbox.Epoch + 1; epoch < before; epoch++ {
		if err := sandbox.KillGroup(ctx, c.group(id, epoch)); err != nil {
			return err
		}
	}
	return nil
}

// clearHalfMade removes empty layers of a preparation that was killed before they had their owner. Nothing
// was ever written into them; what is not empty stays, and the sandbox judges it.
func (c Config) clearHalfMade(dir string) {
	_ = os.Remove(filepath.Join(dir, "upper"))
	_ = os.Remove(filepath.Join(dir, "work"))
}
