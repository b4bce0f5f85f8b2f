package workspace

import (
	"context"

	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/sandbox/change"
)

// Changes compares what a run wrote with what it began with. Its sandbox must be closed.
func (c Config) Changes(ctx context.Context, id, space event.ID, state run.State, past []Past) (change.Set, error) {
	if err := c.own(id, state); err != nil {
		return change.Set{}, err
	}
	lowers, err := c.lowers(ctx, space, state, past)
	if err != nil {
		return change.Set{}, err
	}
	return change.Of(ctx, state.Sandbox.Upper, lowers, change.Limits{})
}
