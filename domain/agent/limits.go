package agent

import "cairn/domain/check"

// Limits bound one run.
type Limits struct {
	WallSeconds int64 `json:"wall_seconds"` // from the first claim to the end, over all workers
	ModelCalls  int64 `json:"model_calls"`  // answers of the model
	ToolSeconds int64 `json:"tool_seconds"` // one tool call
	OutputBytes int64 `json:"output_bytes"` // of one tool call's output that the model gets to see
}

// The limits that apply where none is asked for, and the highest that can be.
var (
	DefaultLimits = Limits{WallSeconds: 3600, ModelCalls: 100, ToolSeconds: 600, OutputBytes: 262144}
	MaxLimits     = Limits{WallSeconds: 86400, ModelCalls: 1000, ToolSeconds: 7200, OutputBytes: 524288}
)

// AskedLimits are limits as a person gives them: null asks for the default, zero is refused.
type AskedLimits struct {
	WallSeconds *int64 `json:"wall_seconds"`
	ModelCalls  *int64 `json:"model_calls"`
	ToolSeconds *int64 `json:"tool_seconds"`
	OutputBytes *int64 `json:"output_bytes"`
}

func (a AskedLimits) resolve() (Limits, error) {
	l := DefaultLimits
	err := check.First(
		resolveOne("limits.wall_seconds", &l.WallSeconds, a.WallSeconds, MaxLimits.WallSeconds),
		resolveOne("limits.model_calls", &l.ModelCalls, a.ModelCalls, MaxLimits.ModelCalls),
		resolveOne("limits.tool_seconds", &l.ToolSeconds, a.ToolSeconds, MaxLimits.ToolSeconds),
		resolveOne("limits.output_bytes", &l.OutputBytes, a.OutputBytes, MaxLimits.OutputBytes))
	return l, err
}

func resolveOne(field string, to, asked *int64, most int64) error {
	if asked == nil {
		return nil
	}
	*to = *asked
	return check.Range(field, *asked, 1, most)
}
