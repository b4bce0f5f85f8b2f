package api

import (
	"strings"

	"cairn/domain/check"
	"cairn/domain/event"
)

// SearchIn is what lists of titled things take.
type SearchIn struct {
	Query string   `query:"q" maxLength:"400" doc:"Only those whose title contains this text; upper and lower case are the same."`
	Agent event.ID `query:"agent_id" format:"uuid" doc:"Only those of this agent."`
}

// title is what a title in lower case is to contain; null when everything is wanted.
func (in SearchIn) title() (*string, error) {
	if in.Query == "" {
		return nil, nil
	}
	if err := check.Text("q", in.Query, 0, 400); err != nil {
		return nil, err
	}
	title := strings.ToLower(in.Query)
	return &title, nil
}

// agent is null when those of all agents are wanted.
func (in SearchIn) agent() *event.ID {
	if in.Agent.IsZero() {
		return nil
	}
	return &in.Agent
}
