package harness

import (
	"cairn/domain/run"
	"cairn/sandbox/egress"
)

// recordEgress records what the sandbox asked for outside. It comes from the proxy's own goroutine, for the last
// time while the sandbox is closed, so before the run's end. What cannot be recorded is told and given up: the
// requests were decided, and the run must not stop for it.
func (l *loop) recordEgress(b egress.Batch) {
	c := run.RecordEgress{Target: l.claim.Target, Epoch: l.claim.Epoch, Allowed: b.Allowed, Refused: b.Refused, Unlisted: b.Unlisted}
	for _, d := range b.Decisions {
		c.Decisions = append(c.Decisions, run.EgressWish{
			Allowed: d.Allowed, Rule: d.Rule, Reason: d.Reason, Host: d.Host, Port: d.Port, Method: d.Method, Path: d.Path, Count: d.Count,
		})
	}
	if err := l.record(c); err != nil {
		l.Log.Warn("what the sandbox asked for outside is not recorded", "run", l.claim.Run, "allowed", b.Allowed, "refused", b.Refused, "error", err)
	}
}
