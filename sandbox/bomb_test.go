package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestForkBombIsBounded(t *testing.T) {
	i := prepare(t, func(s *Spec) { s.Limits.Pids = 64 })
	done := make(chan ExecResult, 1)
	go func() {
		r, err := i.Exec(context.Background(), ExecRequest{Argv: []string{"/bin/bash", "-c", "b() { b | b & b; }; b 2>/dev/null"}, Timeout: 2 * time.Second})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	most := 0
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		pids, err := i.prep.group.Payload()
		must(t, err)
		most = max(most, len(pids))
	}
	if most < 32 || most > 65 {
		t.Errorf("at most %d processes at once, limit 64", most)
	}
	// The hand still serves from its own reserve.
	if _, err := i.Write(context.Background(), "during", []byte("x"), 0); err != nil {
		t.Error(err)
	}
	<-done
	if out := shell(t, i, "ps ax | wc -l"); strings.TrimSpace(out) > "5" {
		t.Errorf("left over: %s", out)
	}
}

func TestMemoryBombLeavesTheHand(t *testing.T) {
	i := prepare(t, func(s *Spec) { s.Limits.Memory = 128 << 20 })
	r, err := i.Exec(context.Background(), ExecRequest{Argv: []string{"tail", "/dev/zero"}, Timeout: 30 * time.Second})
	must(t, err)
	if r.Signal != 9 || r.TimedOut {
		t.Errorf("%+v", r)
	}
	shell(t, i, "echo alive")
	if u := i.Usage(); u.PeakMemory == nil || *u.PeakMemory < 100<<20 || u.CPU == nil || *u.CPU == 0 {
		t.Errorf("usage %+v", u)
	}
}

func TestFilesAreBounded(t *testing.T) {
	i := prepare(t, func(s *Spec) { s.Limits.FileSize, s.Limits.TmpSize = 1<<20, 1<<20 })
	r, err := i.Exec(context.Background(), ExecRequest{Shell: "head -c 2000000 /dev/zero > big"})
	must(t, err)
	if r.ExitCode != nil && *r.ExitCode == 0 {
		t.Error("a file above the limit was written")
	}
	var f *ToolError
	if _, err := i.Write(context.Background(), "big2", make([]byte, 2<<20), 0); !errors.As(err, &f) || f.Code != "too_large" {
		t.Error(err)
	}
	if _, err := i.Write(context.Background(), "/tmp/a", make([]byte, 900<<10), 0); err != nil {
		t.Error(err)
	}
	if _, err := i.Write(context.Background(), "/tmp/b", make([]byte, 900<<10), 0); !errors.As(err, &f) || f.Code != "no_space" {
		t.Error(err)
	}
	if out := shell(t, i, "ls -A /tmp . ; ulimit -c; ulimit -n"); strings.Contains(out, ".cairn") || !strings.HasSuffix(out, "0\n4096\n") {
		t.Errorf("%q", out)
	}
}
