package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cairn/db/bench"
	"cairn/sandbox"
	"cairn/sandbox/baseline"
)

// sandboxGroup names the measurements of the sandbox.
const sandboxGroup = "sandbox"

// sandboxRepeats is how many starts make one round.
const sandboxRepeats = 10

// benchSandbox measures starting /bin/true against fork and exec of it: in a new sandbox, from its preparation to
// its close, in a live one, and by bubblewrap where it is installed; and reading a file through the hand.
func benchSandbox(ctx context.Context, rounds int) ([]bench.Result, error) {
	dir, err := os.MkdirTemp("/var/tmp", "cairn-bench-")
	if err != nil {
		return nil, unavailable(err)
	}
	defer os.RemoveAll(dir)
	backend := sandbox.NewNative(sandbox.Options{})
	defer backend.Close()
	live, err := backend.Prepare(ctx, sandbox.Spec{ID: fmt.Sprintf("bench-live-%d", os.Getpid()), RunDir: filepath.Join(dir, "live")})
	if err != nil {
		return nil, unavailable(err)
	}
	defer live.Close()
	if _, err := live.Write(ctx, "big", make([]byte, readSize), 0); err != nil {
		return nil, err
	}
	starts := 0
	measured := map[string][]float64{}
	for range rounds {
		for name, fn := range map[string]func() error{
			"bare": forkExec,
			"live": func() error { return runTrue(ctx, live) },
			"new": func() error {
				starts++
				id := fmt.Sprintf("bench-%d-%d", os.Getpid(), starts)
				return startTrue(ctx, backend, sandbox.Spec{ID: id, RunDir: filepath.Join(dir, id)})
			},
			"bubblewrap": baseline.Bubblewrap,
			"read":       func() error { _, err := live.Read(ctx, "big", 0, 0); return err },
			"directly":   func() error { _, err := os.ReadFile(filepath.Join(live.Upper(), "big")); return err },
		} {
			took, err := timed(fn)
			if errors.Is(err, baseline.ErrNotInstalled) {
				continue // a machine without it: there is nothing to compare with
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			measured[name] = append(measured[name], took)
		}
	}
	results := []bench.Result{
		bench.Compare("sandbox, start to close of /bin/true", "ms", "fork and exec", measured["new"], measured["bare"]),
		bench.Compare("sandbox, /bin/true in a live one", "ms", "fork and exec", measured["live"], measured["bare"]),
		bench.Compare("sandbox, reading 1 MiB through the hand", "ms", "a direct read", measured["read"], measured["directly"]),
	}
	if wrapped := measured["bubblewrap"]; wrapped != nil {
		results = append(results, bench.Compare("sandbox, start to close of /bin/true", "ms", "bubblewrap, without limits or evidence", measured["new"], wrapped))
	}
	return results, nil
}

// readSize is the size of the file that is read, bytes.
const readSize = 1 << 20

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
