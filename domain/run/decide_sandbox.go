package run

import (
	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// The limits of a sandbox, as they are called in events.
var limits = []string{"memory", "pids", "disk", "inodes", "volume", "depth", "output", "time", "wall"}

const most = 1 << 53 // numbers that every reader of JSON holds exactly

// Decide implements event.Command.
func (c RecordLimit) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, c.Stream())
	if err := state.requireHolder(c.Epoch, meta.Actor); err != nil {
		return nil, err
	}
	if c.Call != nil {
		if _, ok := state.FindCall(*c.Call); !ok {
			return nil, callNotFound(*c.Call)
		}
	}
	err := check.First(check.OneOf("limit", c.Limit, limits...), check.OneOf("by", c.By, "kernel", "watchdog", "worker"),
		check.Range("count", c.Count, 1, most), check.Range("allowed", c.Allowed, 0, most), checkUnknown("measured", c.Measured))
	if err != nil {
		return nil, err
	}
	return c.change(LimitReached{
		Epoch: c.Epoch, Call: c.Call, Limit: c.Limit, Count: c.Count, Allowed: c.Allowed, Measured: c.Measured, By: c.By,
	}), nil
}

// Decide implements event.Command.
func (c CloseSandbox) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, c.Stream())
	if err := state.requireHolder(c.Epoch, meta.Actor); err != nil {
		return nil, err
	}
	if state.Sandbox.Epoch != c.Epoch {
		return nil, fault.New(fault.Conflict, "sandbox_not_recorded", "no sandbox is recorded for epoch %d: record it first", c.Epoch)
	}
	if state.Sandbox.Closed {
		return nil, fault.New(fault.Conflict, "sandbox_closed", "the sandbox of epoch %d is closed: its end is final", c.Epoch)
	}
	err := check.First(c.Usage.check("usage"), check.Range("wall_us", c.WallUS, 0, most), check.Range("duration_us", c.DurationUS, 0, most))
	if err == nil && c.OverLimit != nil {
		err = check.OneOf("over_limit", *c.OverLimit, limits...)
	}
	for _, u := range c.Unknown {
		err = check.First(err, check.Code("unknown.field", u.Field), check.Line("unknown.reason", u.Reason, 1, 4096))
	}
	if err != nil {
		return nil, err
	}
	unknown := append([]Unknown{}, c.Unknown...)
	return c.change(SandboxClosed{
		Epoch: c.Epoch, Host: state.Sandbox.Host, Usage: c.Usage, Unknown: unknown, OverLimit: c.OverLimit, WallUS: c.WallUS, DurationUS: c.DurationUS,
	}), nil
}

func (u SandboxUsage) check(field string) error {
	return check.First(
		checkUnknown(field+".cpu_us", u.CPUUS), checkUnknown(field+".peak_memory_bytes", u.PeakMemoryBytes),
		checkUnknown(field+".memory_kills", u.MemoryKills), checkUnknown(field+".forks_denied", u.ForksDenied),
		checkUnknown(field+".disk_bytes", u.DiskBytes), checkUnknown(field+".disk_inodes", u.DiskInodes))
}
