package harness

import (
	"maps"
	"slices"
	"strings"
	"time"

	"cairn/domain/run"
	"cairn/sandbox"
)

// recordHits appends one event for each limit that a call reached; an empty call is none.
func (l *loop) recordHits(call string, hits []sandbox.Hit) error {
	for _, h := range hits {
		c := run.RecordLimit{
			Target: l.claim.Target, Epoch: l.claim.Epoch, Limit: h.Limit, Count: bounded53(h.Count), Allowed: bounded53(h.Allowed), By: h.By,
		}
		if call != "" {
			c.Call = &call
		}
		if h.Measured != nil {
			n := bounded53(*h.Measured)
			c.Measured = &n
		}
		if err := l.record(c); err != nil {
			return err
		}
	}
	return nil
}

// recordWall says that the run's own time is over.
func (l *loop) recordWall(state run.State) error {
	limit := state.Limits.WallSeconds * int64(time.Second)
	took := limit + max(0, time.Since(state.Deadline).Nanoseconds())
	return l.record(run.RecordLimit{Target: l.claim.Target, Epoch: l.claim.Epoch, Limit: "wall", Count: 1, Allowed: limit, Measured: &took, By: "worker"})
}

// overLimit tells whether the watchdog ended the sandbox.
func (l *loop) overLimit() (sandbox.Hit, bool) {
	if l.box == nil {
		return sandbox.Hit{}, false
	}
	if h := l.box.OverLimit(); h != nil {
		return *h, true
	}
	return sandbox.Hit{}, false
}

// closing is what the log keeps of a sandbox.
func closing(claim Claim, box *sandbox.Instance, u sandbox.Usage, took time.Duration) run.CloseSandbox {
	c := run.CloseSandbox{
		Target: claim.Target, Epoch: claim.Epoch, WallUS: u.Wall / 1000, DurationUS: took.Microseconds(), Unknown: []run.Unknown{},
		Usage: run.SandboxUsage{
			CPUUS: number(u.CPU, 1000), PeakMemoryBytes: number(u.PeakMemory, 1), MemoryKills: number(u.MemoryKills, 1),
			ForksDenied: number(u.ForksDenied, 1), DiskBytes: number(u.DiskBytes, 1), DiskInodes: number(u.DiskInodes, 1),
		},
	}
	for _, name := range slices.Sorted(maps.Keys(u.Unknown)) {
		field := name
		if name == "cpu_nanoseconds" {
			field = "cpu_us"
		}
		c.Unknown = append(c.Unknown, run.Unknown{Field: field, Reason: shortLine(u.Unknown[name])})
	}
	if over := box.OverLimit(); over != nil {
		c.OverLimit = &over.Limit
	}
	return c
}

// shortLine keeps a reason of the kernel on one line of the log.
func shortLine(text string) string {
	text = strings.Join(strings.Fields(clean(text)), " ")
	return strings.ToValidUTF8(text[:min(len(text), 1000)], "")
}

func number(n *uint64, divide uint64) *int64 {
	if n == nil {
		return nil
	}
	v := bounded53(*n / divide)
	return &v
}

// bounded53 keeps a number within what every reader of JSON holds exactly.
func bounded53(n uint64) int64 { return int64(min(n, 1<<53)) }
