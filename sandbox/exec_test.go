package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestExec(t *testing.T) {
	i := prepare(t, func(s *Spec) { s.Env = map[string]string{"A": "spec", "B": "spec"} })
	ctx := context.Background()
	r, err := i.Exec(ctx, ExecRequest{Shell: "echo out; echo err >&2; echo $A $B $PWD; cat; exit 3", Env: map[string]string{"B": "call"}, Dir: "/tmp", Stdin: []byte("input")})
	must(t, err)
	if r.ExitCode == nil || *r.ExitCode != 3 || r.Stdout.Text() != "out\nspec call /tmp\ninput" || r.Stderr.Text() != "err\n" || r.Duration <= 0 {
		t.Errorf("%+v %q %q", r, r.Stdout.Text(), r.Stderr.Text())
	}
	r, err = i.Exec(ctx, ExecRequest{Shell: "kill -11 $$"})
	must(t, err)
	if r.ExitCode != nil || r.Signal != 11 {
		t.Errorf("signal: %+v", r)
	}
	r, err = i.Exec(ctx, ExecRequest{Argv: []string{"cat", "/proc/self/environ"}})
	must(t, err)
	want := strings.Join(environment(map[string]string{"A": "spec", "B": "spec"}), "\x00") + "\x00"
	if r.Stdout.Text() != want {
		t.Errorf("environment %q, expected %q", r.Stdout.Text(), want)
	}
	for code, q := range map[string]ExecRequest{
		"not_found":     {Argv: []string{"no-such-program"}},
		"not_runnable":  {Argv: []string{"/etc/passwd"}},
		"not_directory": {Argv: []string{"true"}, Dir: "/nowhere"},
		"bad_argument":  {},
	} {
		_, err := i.Exec(ctx, q)
		var f *ToolError
		if !errors.As(err, &f) || f.Code != code {
			t.Errorf("%s: %v", code, err)
		}
	}
	r, err = i.Exec(ctx, ExecRequest{Shell: "head -c 5 >/dev/null", Stdin: bytes.Repeat([]byte("x"), 4<<20)})
	must(t, err)
	if r.ExitCode == nil || *r.ExitCode != 0 {
		t.Errorf("unread input: %+v", r)
	}
}

func TestOutputIsBounded(t *testing.T) {
	i := prepare(t, func(s *Spec) { s.Limits.Output = 1000 })
	var seen int
	r, err := i.Exec(context.Background(), ExecRequest{
		Shell:    "seq 1 300000; printf 'end\\377'",
		OnOutput: func(_ string, p []byte) { seen += len(p) },
	})
	must(t, err)
	o := r.Stdout
	if int64(seen) != o.Total || o.Total != 1988899 || !o.Truncated || len(o.Head) != 500 || len(o.Tail) != 500 {
		t.Errorf("seen %d total %d head %d tail %d", seen, o.Total, len(o.Head), len(o.Tail))
	}
	if !strings.HasPrefix(o.Text(), "1\n2\n") || !strings.HasSuffix(o.Text(), "299999\n300000\nend\uFFFD") {
		t.Errorf("%q", o.Text())
	}
}

func TestSlowReaderSlowsOnlyItsOwnProgram(t *testing.T) {
	i := prepare(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	block := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := i.Exec(ctx, ExecRequest{Shell: "yes", OnOutput: func(string, []byte) { <-block }})
		done <- err
	}()
	time.Sleep(100 * time.Millisecond)
	for range 3 {
		if out := shell(t, i, "echo hi"); out != "hi\n" {
			t.Error(out)
		}
	}
	cancel()
	close(block)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	shell(t, i, "true")
}

func TestTimeLimitKillsEveryProcess(t *testing.T) {
	i := prepare(t, nil)
	begin := time.Now()
	r, err := i.Exec(context.Background(), ExecRequest{
		// Double fork, own sessions, signals ignored, output held open.
		Shell:   `(setsid sh -c 'trap "" TERM HUP INT; (setsid sleep 1000 &) ; sleep 1001' &) ; nohup sleep 1002 >/dev/null 2>&1 & sleep 1003`,
		Timeout: 300 * time.Millisecond,
	})
	must(t, err)
	if !r.TimedOut || r.Signal != 9 || time.Since(begin) > 3*time.Second {
		t.Errorf("%+v after %v", r, time.Since(begin))
	}
	if out := shell(t, i, "ps axo args | grep -c '[s]leep 100' || true"); strings.TrimSpace(out) != "0" {
		t.Errorf("%s sleeps survived", out)
	}
}

func TestCancelInterruptsOthers(t *testing.T) {
	i := prepare(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	other := make(chan ExecResult, 1)
	go func() {
		r, err := i.Exec(context.Background(), ExecRequest{Shell: "echo ready; sleep 1000"})
		if err != nil {
			t.Error(err)
		}
		other <- r
	}()
	time.AfterFunc(300*time.Millisecond, cancel)
	if _, err := i.Exec(ctx, ExecRequest{Shell: "sleep 1000"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if r := <-other; !r.Interrupted || r.Signal != 9 || r.Stdout.Text() != "ready\n" {
		t.Errorf("%+v", r)
	}
}

func TestBackgroundChildMayStay(t *testing.T) {
	i := prepare(t, nil)
	begin := time.Now()
	shell(t, i, `(while :; do echo noise; echo alive >> /tmp/log; sleep 0.05; done) & echo started`)
	if d := time.Since(begin); d > 2*time.Second {
		t.Errorf("the call took %v", d)
	}
	// Long after its stream has no reader any more.
	shell(t, i, "sleep 1; a=$(wc -l < /tmp/log); sleep 0.3; test $(wc -l < /tmp/log) -gt $a")
}

func TestManyCallsAtOnce(t *testing.T) {
	i := prepare(t, nil)
	var all sync.WaitGroup
	for n := range 24 {
		all.Go(func() {
			want := fmt.Sprintf("%d %s", n, strings.Repeat("x", 100000+n))
			r, err := i.Exec(context.Background(), ExecRequest{Argv: []string{"cat"}, Stdin: []byte(want)})
			if err != nil || r.Stdout.Text() != want {
				t.Errorf("%d: %v, %d bytes", n, err, r.Stdout.Total)
			}
			if _, err := i.Write(context.Background(), fmt.Sprintf("f%d", n), []byte(want), 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestSignalsDoNotEndTheHand(t *testing.T) {
	i := prepare(t, nil)
	for range 20 { // in bursts: some arrive while others are handled
		shell(t, i, "for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; true")
	}
	shell(t, i, "echo still here")
}
