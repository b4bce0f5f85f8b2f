package agent

import (
	"fmt"
	"time"

	"cairn/domain/run"
)

// Doubt tells the model what is known of a call whose end nobody saw.
func Doubt(call run.Call) string {
	return fmt.Sprintf("The outcome of this call is unknown. The worker that made it (the run's epoch %d) was lost before it could record a result. "+
		"The call may have had all of its effect, a part of it, or none; its processes were killed and its output is lost. "+
		"It was not made again. Look at the state of the workspace before you decide whether to repeat it.", call.CalledEpoch)
}

// SandboxLost tells the model what is known of a call during which the sandbox broke down.
func SandboxLost(after time.Duration) string {
	return fmt.Sprintf("The outcome of this call is unknown. The sandbox broke down while it ran, after %s. "+
		"It may have had all of its effect, a part of it, or none; all processes were killed, the files in /workspace are kept. "+
		"Look at the state of the workspace before you decide whether to repeat it.", seconds(after))
}

// Refused tells the model that it has no such tool.
func Refused(call run.Call, granted []string) string {
	if len(granted) == 0 {
		return fmt.Sprintf("error: there is no tool %q in this run, and no other: answer without tools.", call.Tool)
	}
	return fmt.Sprintf("error: there is no tool %q in this run. It has: %q.", call.Tool, granted)
}

// The reasons for which a call is stopped from outside.
const (
	StoppedByCancel = "the run was cancelled"
	StoppedByDrain  = "the worker shuts down; another one goes on with this run"
	StoppedByWall   = "the run's time is over"
)

// Stopped tells the model that a call was ended early.
func Stopped(why string, after time.Duration) string {
	return fmt.Sprintf("This call was stopped after %s: %s. All its processes were killed; what it changed until then stands.", seconds(after), why)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
