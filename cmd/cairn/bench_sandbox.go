package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cairn/db/bench"
	"cairn/sandbox"
)

// sandboxGroup names the measurements of the sandbox.
const sandboxGroup = "sandbox"

// sandboxRepeats is how many starts make one round.
const sandboxRepeats = 10

// benchSandbox measures starting /bin/true against fork and exec of it: in a new sandbox, from its preparation to
// its close, and in a live one.
func benchSandbox(ctx context.Context, rounds int) ([]bench.Result, error) {
	dir, err := os.MkdirTemp("/var/tmp", "cairn-bench-")
	if err != nil {
		return nil, unavailable(err)
	}
	defer os.RemoveAll(dir)
	backend := sandbox.NewNative(sandbox.Options{})
	defer backend.Close()
	live, err := backend.Prepare(ctx, sandbox.Spec{ID: "bench-live", RunDir: filepath.Join(dir, "live")})
	if err != nil {
		return nil, unavailable(err)
	}
	defer live.Close()
	starts := 0
	var cold, warm, floors []float64
	for range rounds {
		bare, err := timed(forkExec)
		if err != nil {
			return nil, err
		}
		inLive, err := timed(func() error { return runTrue(ctx, live) })
		if err != nil {
			return nil, err
		}
		inNew, err := timed(func() error {
			starts++
			id := fmt.Sprintf("bench-%d", starts)
			return startTrue(ctx, backend, sandbox.Spec{ID: id, RunDir: filepath.Join(dir, id)})
		})
		if err != nil {
			return nil, err
		}
		floors, warm, cold = append(floors, bare), append(warm, inLive), append(cold, inNew)
	}
	return []bench.Result{
		bench.Compare("sandbox, start to close of /bin/true", "ms", "fork and exec", cold, floors),
		bench.Compare("sandbox, /bin/true in a live one", "ms", "fork and exec", warm, floors),
	}, nil
}

// timed is the mean time of one call in milliseconds.
func timed(fn func() error) (float64, error) {
	began := time.Now()
	for range sandboxRepeats {
		if err := fn(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(began).Microseconds()) / 1000 / sandboxRepeats, nil
}

func forkExec() error {
	process, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		return err
	}
	return wait(process)
}

func runTrue(ctx context.Context, i *sandbox.Instance) error {
	_, err := i.Exec(ctx, sandbox.ExecRequest{Argv: []string{"/bin/true"}})
	return err
}

func startTrue(ctx context.Context, backend *sandbox.Native, spec sandbox.Spec) error {
	i, err := backend.Prepare(ctx, spec)
	if err != nil {
		return unavailable(err)
	}
	if err := runTrue(ctx, i); err != nil {
		i.Close()
		return err
	}
	return i.Close()
}
