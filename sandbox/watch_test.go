package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cairn/sandbox/layer"
)

func TestDiskIsWatched(t *testing.T) {
	for limit, c := range map[string]struct {
		change  func(*Limits)
		command string
	}{
		LimitDisk:   {func(l *Limits) { l.Disk = 20 << 20 }, "while :; do head -c 1000000 /dev/zero >> f$((n=n+1)); done"},
		LimitInodes: {func(l *Limits) { l.Inodes = 500 }, "mkdir $(seq 800); sleep 100"},
		LimitDepth:  {func(*Limits) {}, "p=d; for n in 1 2 3 4 5 6 7 8; do p=$p/$p; done; mkdir -p $p; mkdir -p d/x; cd $p && mkdir -p $p; sleep 100"},
	} {
		t.Run(limit, func(t *testing.T) {
			other := prepare(t, nil)
			i := prepare(t, func(s *Spec) { c.change(&s.Limits) })
			_, err := i.Exec(context.Background(), ExecRequest{Shell: c.command, Timeout: 30 * time.Second})
			var over *OverLimitError
			if !errors.As(err, &over) || !errors.Is(err, ErrHandLost) || over.Hit.Limit != limit || over.Hit.By != "watchdog" {
				t.Fatalf("got %v", err)
			}
			h := i.OverLimit()
			if h == nil || limit != LimitDepth && *h.Measured <= h.Allowed {
				t.Fatalf("hit %+v", h)
			}
			t.Log(h)
			<-i.dog.done
			if n, err := i.prep.group.Empty(); err != nil || !n {
				t.Error("processes are left", err)
			}
			shell(t, other, "echo others go on")
		})
	}
}

func TestFullVolumeIsRefused(t *testing.T) {
	s := testSpec(t)
	s.Limits.VolumeFree = 1 << 60
	_, err := newNative(t).Prepare(context.Background(), s)
	var r *RefusedError
	if !errors.As(err, &r) || r.Control != DiskWatchdog || r.Fix == "" {
		t.Errorf("got %v", err)
	}
}

func TestHitsAreTold(t *testing.T) {
	i := prepare(t, func(s *Spec) { s.Limits.Pids, s.Limits.Memory, s.Limits.Output = 32, 64<<20, 1000 })
	want := func(command, limit string) {
		t.Helper()
		r, err := i.Exec(context.Background(), ExecRequest{Shell: command, Timeout: 20 * time.Second})
		must(t, err)
		var names []string
		for _, h := range r.Hits {
			if h.Count == 0 || h.Allowed == 0 {
				t.Errorf("%+v", h)
			}
			names = append(names, h.Limit)
		}
		if strings.Join(names, " ") != limit {
			t.Errorf("%s: hits %v, want %q", command, r.Hits, limit)
		}
	}
	want("true", "")
	want("for n in $(seq 40); do sleep 0.2 & done; wait", LimitPids)
	want("tail /dev/zero", LimitMemory)
	want("seq 1000", LimitOutput)
	want("true", "")
	r, err := i.Exec(context.Background(), ExecRequest{Shell: "sleep 100", Timeout: 50 * time.Millisecond})
	if err != nil || len(r.Hits) != 1 || r.Hits[0].Limit != LimitTime {
		t.Errorf("%+v %v", r.Hits, err)
	}
	u := i.Usage()
	if u.MemoryKills == nil || *u.MemoryKills == 0 || u.ForksDenied == nil || *u.ForksDenied == 0 || u.DiskBytes == nil || len(u.Unknown) > 0 || u.Wall <= 0 {
		t.Errorf("%+v", u)
	}
}

func TestFrozenStandsStill(t *testing.T) {
	i := prepare(t, nil)
	shell(t, i, "(while :; do echo x >> /workspace/log; done) >/dev/null 2>&1 &")
	size := func() int64 {
		st, err := os.Stat(i.Upper() + "/log")
		must(t, err)
		return st.Size()
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(i.Upper() + "/log"); err == nil {
			break
		}
		if time.Since(begin) > 5*time.Second {
			t.Fatal("it does not write")
		}
	}
	must(t, i.Freeze(context.Background()))
	before := size()
	time.Sleep(30 * time.Millisecond)
	if size() != before {
		t.Error("it writes while it is frozen")
	}
	must(t, i.Thaw())
	shell(t, i, "true")
}

func TestMeasureIsNotFooled(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(outside+"/big", make([]byte, 1<<20), 0o644))
	must(t, os.Symlink(outside, dir+"/link"))
	must(t, os.WriteFile(dir+"/a", make([]byte, 100_000), 0o644))
	must(t, os.Link(dir+"/a", dir+"/b"))
	must(t, unix.Mkfifo(dir+"/fifo", 0o600))
	for n := range 300 {
		must(t, os.Mkdir(fmt.Sprintf("%s/d%d", dir, n), 0o000))
	}
	must(t, os.Truncate(dir+"/a", 1<<40)) // a hole takes no room
	size, err := layer.Measure(context.Background(), dir)
	must(t, err)
	if size.Inodes != 303 || size.Bytes < 100_000 || size.Bytes > 4<<20 {
		t.Errorf("%+v", size)
	}
}
