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

// likeSpecial are the characters that a pattern of LIKE gives a meaning; whoever searches means themselves.
var likeSpecial = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// pattern is what a lower-case title is compared with; null when everything is wanted.
func (in SearchIn) pattern() (*string, error) {
	if in.Query == "" {
		return nil, nil
	}
	if err := check.Text("q", in.Query, 0, 400); err != nil {
		return nil, err
	}
	pattern := "%" + likeSpecial.Replace(strings.ToLower(in.Query)) + "%"
	return &pattern, nil
}

// agent is null when those of all agents are wanted.
func (in SearchIn) agent() *event.ID {
	if in.Agent.IsZero() {
		return nil
	}
	return &in.Agent
}
