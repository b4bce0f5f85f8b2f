package agent

import (
	"slices"

	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/space"
)

const (
	maxName         = 200
	maxModel        = 128
	maxInstructions = 64 << 10
)

// Decide implements event.Command.
func (c Revise) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if err := space.Require(event.StateOf[space.State](view, space.Stream(c.Space)), meta.Actor, space.Doers...); err != nil {
		return nil, err
	}
	limits, err := c.Limits.resolve()
	err = check.First(check.ID("agent", c.Agent), check.Line("name", c.DisplayName, 1, maxName), CheckModel("model", c.Model),
		check.Text("instructions", c.Instructions, 0, maxInstructions), checkTools("tools", c.Tools), err)
	if err != nil {
		return nil, err
	}
	stream := Stream(c.Agent, c.Space)
	now := event.StateOf[State](view, stream).Revision
	if c.ExpectedRevision != nil && *c.ExpectedRevision != now {
		return nil, fault.New(fault.Conflict, "agent_revised", "the agent is at revision %d, expected %d: read it again", now, *c.ExpectedRevision)
	}
	revised := Revised{
		Revision: now + 1, Name: event.Seal(c.DisplayName), Model: c.Model, Instructions: event.Seal(c.Instructions),
		Tools: append([]string{}, c.Tools...), Limits: limits,
	}
	return []event.Change{{Stream: stream, Events: []event.Event{revised}}}, nil
}

// Require answers an agent that exists in a space.
func Require(view event.View, id, in event.ID) (State, error) {
	state := event.StateOf[State](view, Stream(id, in))
	if state.Revision == 0 {
		return state, fault.New(fault.NotFound, "agent_not_found", "agent %s does not exist in this space: check its id", id)
	}
	return state, nil
}

// CheckModel refuses what cannot be the name of a model.
func CheckModel(field, model string) error { return check.Name(field, model, maxModel) }

func checkTools(field string, tools []string) error {
	for i, tool := range tools {
		if err := check.OneOf(field, tool, Tools()...); err != nil {
			return err
		}
		if slices.Contains(tools[:i], tool) {
			return fault.Field(field, "%q is listed twice: list it once", tool)
		}
	}
	return nil
}
