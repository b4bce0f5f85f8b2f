package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"cairn/domain/run"
	"cairn/sandbox"
)

//go:embed shell.md
var shellText string

const shellParameters = `{"type":"object","additionalProperties":false,"required":["command"],"properties":{
"command":{"type":"string","description":"Text for /bin/sh -c"},
"timeout_seconds":{"type":"integer","minimum":1,"description":"Give up after this many seconds; the run's own limit for one call applies in any case"}}}`

type shellArguments struct {
	Command        string `json:"command"`
	TimeoutSeconds *int64 `json:"timeout_seconds"`
}

func (a *shellArguments) check() error {
	if a.TimeoutSeconds != nil && *a.TimeoutSeconds < 1 {
		return fmt.Errorf("timeout_seconds is %d, want 1 or more", *a.TimeoutSeconds)
	}
	return require("command", a.Command)
}

func (a *shellArguments) act(ctx context.Context, box *sandbox.Instance, limits Limits) (Result, error) {
	seconds := limits.Seconds
	if a.TimeoutSeconds != nil {
		seconds = min(seconds, *a.TimeoutSeconds)
	}
	exec, err := box.Exec(ctx, sandbox.ExecRequest{Shell: a.Command, Timeout: time.Duration(seconds) * time.Second})
	if fault, ok := errors.AsType[*sandbox.ToolError](err); ok {
		return failed(fmt.Sprintf("error: %s: %s", fault.Code, fault.Message)), nil
	}
	result := shellResult(exec, seconds, limits.OutputBytes)
	result.Hits = exec.Hits
	return result, err
}

// shellResult is the code, then what the command wrote to standard output, then to standard error.
func shellResult(exec sandbox.ExecResult, seconds, most int64) Result {
	r := Result{Outcome: run.OutcomeOK, Bytes: exec.Stdout.Total + exec.Stderr.Total}
	switch {
	case exec.TimedOut:
		r.Outcome = run.OutcomeTimeout
		r.Text = fmt.Sprintf("exit code: unknown (timed out after %d s)\n", seconds)
	case exec.ExitCode != nil:
		r.ExitCode = exec.ExitCode
		r.Text = fmt.Sprintf("exit code: %d\n", *exec.ExitCode)
	default:
		r.Text = fmt.Sprintf("exit code: unknown (killed by signal %d)\n", exec.Signal)
	}
	out, err := readable(exec.Stdout), readable(exec.Stderr)
	room, errRoom := share(out.size(), err.size(), int(most))
	text, cut := clip(out.head, out.tail, out.missing, room)
	r.Text, r.Truncated = r.Text+text, cut
	if exec.Stderr.Total > 0 {
		if text != "" && text[len(text)-1] != '\n' {
			r.Text += "\n"
		}
		text, cut = clip(err.head, err.tail, err.missing, errRoom)
		r.Text, r.Truncated = r.Text+"stderr:\n"+text, r.Truncated || cut
	}
	return r
}

// words is what a stream held, as text.
type words struct {
	head, tail string
	missing    int64 // bytes between them
}

func (w words) size() int { return len(w.head) + len(w.tail) }

func readable(o sandbox.Output) words {
	missing := o.Total - int64(len(o.Head)+len(o.Tail))
	if missing == 0 { // a character may lie across the two parts
		return words{head: clean(string(o.Bytes()))}
	}
	return words{clean(string(o.Head)), clean(string(o.Tail)), missing}
}

// share gives each stream half of the room, and what the other one leaves.
func share(out, err, most int) (int, int) {
	half := most / 2
	switch {
	case out+err <= most:
		return out, err
	case err <= half:
		return most - err, err
	case out <= half:
		return out, most - out
	}
	return most - half, half
}
