package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cairn/domain/fault"
	"cairn/domain/run"
	"cairn/sandbox"
	"cairn/worker/agent"
	"cairn/worker/tool"
	"cairn/worker/workspace"
)

// doCall makes one tool call: what can be refused without acting is returned at once.
func (l *loop) doCall(state run.State, call run.Call, again bool) (over bool, err error) {
	act, err := tool.Parse(call.Tool, call.Arguments.Text())
	if err != nil && !again {
		return false, l.give(call, run.OutcomeError, bounded(err.Error()))
	}
	if err != nil { // made by a version that read these arguments
		return false, l.give(call, run.OutcomeInDoubt, agent.Doubt(call))
	}
	if l.box == nil {
		if over, err := l.prepare(state); over || err != nil || l.box == nil {
			return over, err
		}
	}
	select {
	case <-l.box.Lost(): // it broke between two calls: nothing is in doubt
		if over := l.box.OverLimit(); over != nil {
			l.broke = true
			return false, l.recordHits("", []sandbox.Hit{*over})
		}
		return true, l.release()
	default:
	}
	err = l.record(run.CallTool{Target: l.claim.Target, Epoch: l.claim.Epoch, Call: call.ID, Again: again}, "call_called", "call_not_in_doubt")
	if fault.HasCode(err, "cancel_requested") {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	result, hits := l.act(state, call, act)
	if err := l.recordHits(call.ID, hits); err != nil {
		return true, err
	}
	return false, l.giveResult(result)
}

// prepare makes the sandbox at the first call that needs it. box stays nil when the work was stopped meanwhile.
func (l *loop) prepare(state run.State) (over bool, err error) {
	if err := l.history(); err != nil {
		return l.missing(err)
	}
	begin := time.Now()
	workspaces := l.Workspaces
	workspaces.OnEgress = l.recordEgress
	box, err := workspaces.Prepare(l.orders.work, l.claim.Run, l.claim.Space, state, l.layers())
	if l.orders.work.Err() != nil && err != nil {
		return false, nil
	}
	if _, refused := errors.AsType[*workspace.Refusal](err); refused {
		return true, l.refused(state, err)
	}
	if err != nil {
		return true, err
	}
	l.box, l.recorded = box, false
	context.AfterFunc(l.held, func() { _ = box.Close() }) // its error is the loop's, which closes it again
	report, err := json.Marshal(box.Report())
	if err != nil {
		return true, fmt.Errorf("sandbox report: %w", err)
	}
	err = l.record(run.RecordSandbox{
		Target: l.claim.Target, Epoch: l.claim.Epoch, Host: l.Workspaces.Host, Backend: box.Report().Backend, Cgroup: box.Cgroup(),
		Upper: box.Upper(), Reattached: state.Sandbox.Epoch != 0, Report: report, Grade: (*string)(box.Report().Grade), DurationUS: time.Since(begin).Microseconds(),
	}, "sandbox_recorded")
	l.recorded = err == nil
	return false, err
}

// act runs the tool and says what it came to.
func (l *loop) act(state run.State, call run.Call, act tool.Act) (run.ReturnTool, []sandbox.Hit) {
	begin := time.Now()
	limits := tool.Limits{Seconds: state.Limits.ToolSeconds, OutputBytes: state.Limits.OutputBytes}
	result, err := act(l.orders.work, l.box, limits)
	took := time.Since(begin)
	if errors.Is(err, sandbox.ErrHandLost) {
		l.broke = true
	}
	if err != nil {
		hits := result.Hits
		result = l.stopped(result, err, took)
		result.Hits = hits
	}
	if over := l.box.OverLimit(); over != nil {
		result.Hits = append(result.Hits, *over)
	}
	return run.ReturnTool{
		Call: call.ID, Outcome: result.Outcome, ExitCode: result.ExitCode, Output: result.Text,
		OutputBytes: result.Bytes, Truncated: result.Truncated, DurationUS: took.Microseconds(),
	}, result.Hits
}

// stopped is the result of a call that did not come to an end.
func (l *loop) stopped(result tool.Result, err error, took time.Duration) tool.Result {
	seen := result.Text
	switch why := context.Cause(l.orders.work); {
	case errors.Is(why, errCancelled) || errors.Is(why, errWiped):
		result.Outcome, result.Text = run.OutcomeCancelled, agent.Stopped(agent.StoppedByCancel, took)
	case errors.Is(why, errDrained):
		result.Outcome, result.Text = run.OutcomeCancelled, agent.Stopped(agent.StoppedByDrain, took)
	case errors.Is(why, errOutOfTime):
		result.Outcome, result.Text = run.OutcomeTimeout, agent.Stopped(agent.StoppedByWall, took)
	case errors.Is(err, sandbox.ErrHandLost):
		result.Outcome, result.Text = run.OutcomeInDoubt, agent.SandboxLost(took)
	default:
		result.Outcome, result.Text = run.OutcomeError, "error: the tool broke down: "+bounded(err.Error())
	}
	result.ExitCode = nil
	if seen != "" {
		result.Text += "\nUntil then:\n" + seen
	}
	return result
}
