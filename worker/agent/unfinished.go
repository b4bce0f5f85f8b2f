package agent

import (
	"fmt"
	"strings"

	"cairn/domain/run"
)

const (
	maxUnfinished = 32 << 10 // bytes of what an unfinished attempt is told with; its end comes first
	maxArguments  = 400      // bytes of one call's arguments
)

// unfinished tells what an attempt without an answer did, for one that continues it: its files are there. It is
// text, since calls that never returned could not stand in the conversation as calls.
func unfinished(attempt run.State) string {
	end := "it was cancelled"
	if attempt.Status == run.StatusFailed {
		end = "it failed with " + attempt.Code
	}
	last := fmt.Sprintf("[This attempt ended without an answer: %s. Its changes to files are in the workspace.]", end)
	told, size := []string{last}, len(last)
	for i := len(attempt.Steps) - 1; i >= 0; i-- {
		step := stepTold(attempt.Steps[i])
		if size += len(step); size > maxUnfinished {
			told = append(told, fmt.Sprintf("[%d earlier steps are left out.]", i+1))
			break
		}
		told = append(told, step)
	}
	var b strings.Builder
	for i := len(told) - 1; i >= 0; i-- {
		b.WriteString(told[i] + "\n")
	}
	return strings.TrimSpace(b.String())
}

func stepTold(step run.Step) string {
	lines := []string{text(step.Text)}
	for _, call := range step.Calls {
		outcome := call.Result.Outcome
		if call.State != run.Returned {
			outcome = "never returned"
		}
		asked := text(call.Arguments)
		if len(asked) > maxArguments {
			asked = strings.ToValidUTF8(asked[:maxArguments], "") + "…"
		}
		lines = append(lines, fmt.Sprintf("[called %s %s: %s]", call.Tool, asked, outcome))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
