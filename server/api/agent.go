package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"cairn/db/read"
	"cairn/domain/agent"
	"cairn/domain/egress"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// AgentSummary is an agent in a list.
type AgentSummary struct {
	ID        event.ID  `json:"agent_id" format:"uuid"`
	Space     event.ID  `json:"space_id" format:"uuid"`
	Revision  int64     `json:"revision"`
	Name      *string   `json:"name"`
	Model     string    `json:"model"`
	RevisedAt time.Time `json:"revised_at"`
}

// Agent is one revision of an agent.
type Agent struct {
	AgentSummary
	Instructions *string      `json:"instructions"`
	Tools        []string     `json:"tools" nullable:"false"`
	Limits       agent.Limits `json:"limits"`
	RevisedBy    string       `json:"revised_by" doc:"The actor, like account/ID."`

	Egress *egress.Policy `json:"egress,omitempty" doc:"What its runs may reach. Absent: what the space says, else nothing."`
}

// AgentRevised names an agent and its new revision.
type AgentRevised struct {
	Agent    event.ID `json:"agent_id" format:"uuid"`
	Revision int64    `json:"revision"`
	Version  int64    `json:"version"`
}

// LimitsIn are limits as people give them.
type LimitsIn struct {
	WallSeconds *int64 `json:"wall_seconds,omitempty" minimum:"1" maximum:"86400" doc:"From the first claim to the end; 3600 unless given."`
	ModelCalls  *int64 `json:"model_calls,omitempty" minimum:"1" maximum:"1000" doc:"100 unless given."`
	ToolSeconds *int64 `json:"tool_seconds,omitempty" minimum:"1" maximum:"7200" doc:"Of one call; 600 unless given."`
	OutputBytes *int64 `json:"output_bytes,omitempty" minimum:"1" maximum:"524288" doc:"Of one call that the model gets to see; 262144 unless given."`
}

// over keeps what is not given.
func (l LimitsIn) over(now agent.Limits) agent.AskedLimits {
	pick := func(given *int64, was int64) *int64 {
		if given != nil {
			return given
		}
		return &was
	}
	return agent.AskedLimits{
		WallSeconds: pick(l.WallSeconds, now.WallSeconds), ModelCalls: pick(l.ModelCalls, now.ModelCalls),
		ToolSeconds: pick(l.ToolSeconds, now.ToolSeconds), OutputBytes: pick(l.OutputBytes, now.OutputBytes),
	}
}

type agentCreateIn struct {
	Keyed
	Space event.ID `path:"space" format:"uuid"`
	Body  struct {
		Name         string    `json:"name" minLength:"1" maxLength:"200"`
		Model        string    `json:"model" minLength:"1" maxLength:"128" doc:"One of GET /models."`
		Instructions string    `json:"instructions,omitempty" maxLength:"65536" doc:"At most 64 KiB."`
		Tools        *[]string `json:"tools,omitempty" maxItems:"6" doc:"Of shell, read, write, edit, glob, grep; all of them unless given."`
		Limits       LimitsIn  `json:"limits,omitempty"`

		Egress *egress.Policy `json:"egress,omitempty" doc:"What its runs may reach, inside of what the space and the workers allow. Absent: what the space says, else nothing."`
	}
}

type agentReviseIn struct {
	OneAgent
	Body struct {
		Name             *string   `json:"name,omitempty" minLength:"1" maxLength:"200"`
		Model            *string   `json:"model,omitempty" minLength:"1" maxLength:"128"`
		Instructions     *string   `json:"instructions,omitempty" maxLength:"65536"`
		Tools            *[]string `json:"tools,omitempty" maxItems:"6"`
		Limits           LimitsIn  `json:"limits,omitempty"`
		ExpectedRevision *int64    `json:"expected_revision,omitempty" minimum:"1" doc:"409 agent_revised when the agent is at another one."`

		Egress          *egress.Policy `json:"egress,omitempty"`
		EgressFromSpace bool           `json:"egress_from_space,omitempty" doc:"true: the agent has no egress of its own any more; not beside egress."`
	}
}

// OneAgent is the path of one.
type OneAgent struct {
	Agent event.ID `path:"agent" format:"uuid"`
}

func (a *API) agentRoutes() {
	register(a, route("GET /spaces/{space}/agents", "agent-list", "Agents of a space"), a.agents)
	register(a, withStatus(route("POST /spaces/{space}/agents", "agent-create", "Create an agent"), http.StatusCreated), a.createAgent)
	register(a, route("GET /agents/{agent}", "agent-get", "An agent as it is now"), a.getAgent)
	revise := route("PATCH /agents/{agent}", "agent-revise", "Append a revision")
	revise.Description = "What is not given stays. Runs keep the revision that they were queued with."
	register(a, revise, a.reviseAgent)
	register(a, route("GET /agents/{agent}/revisions", "agent-revision-list", "Revisions of an agent"), a.revisions)
}

func (a *API) agents(ctx context.Context, in *InSpace) (*answer[List[AgentSummary]], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	from, err := in.from("agent")
	if err != nil {
		return nil, err
	}
	rows, err := a.DB.Read().AgentPage(ctx, read.AgentPageParams{SpaceID: in.Space, At: from.at, ID: from.id, Lim: int32(in.Limit + 1)})
	if err != nil {
		return nil, fmt.Errorf("agents of space %s: %w", in.Space, err)
	}
	show := func(r read.Agent) AgentSummary {
		return AgentSummary{ID: r.ID, Space: r.SpaceID, Revision: r.Revision, Name: r.Name, Model: r.Model, RevisedAt: r.RevisedAt.UTC()}
	}
	return page("agent", in.Limit, rows, show, func(r read.Agent) place { return place{at: r.RevisedAt, id: r.ID} }), nil
}

func (a *API) createAgent(ctx context.Context, in *agentCreateIn) (*answer[AgentRevised], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	tools := agent.Tools()
	if in.Body.Tools != nil {
		tools = *in.Body.Tools
	}
	made, err := decoded[agent.Answer](a.execute(ctx, agent.Revise{
		Agent: id, Space: in.Space, DisplayName: in.Body.Name, Model: in.Body.Model, Instructions: in.Body.Instructions, Tools: tools,
		Limits: in.Body.Limits.over(agent.DefaultLimits), ExpectedRevision: new(int64), Egress: in.Body.Egress,
	}, in.IdempotencyKey, in))
	if err != nil {
		return nil, err
	}
	return reply(AgentRevised{Agent: made.Agent, Revision: 1, Version: 1}), nil
}

func (a *API) getAgent(ctx context.Context, in *OneAgent) (*answer[Agent], error) {
	row, err := a.agent(ctx, in.Agent)
	if err != nil {
		return nil, err
	}
	all, err := a.revisionsBefore(ctx, row, row.Revision+1, 1)
	if err != nil {
		return nil, err
	}
	return reply(all[0]), nil
}

func (a *API) reviseAgent(ctx context.Context, in *agentReviseIn) (*answer[AgentRevised], error) {
	row, err := a.agent(ctx, in.Agent)
	if err != nil {
		return nil, err
	}
	folded, _, err := a.DB.Load(ctx, agent.Stream(row.ID, row.SpaceID))
	if err != nil {
		return nil, err
	}
	now, _ := folded.(agent.State)
	command := agent.Revise{
		Agent: row.ID, Space: row.SpaceID, DisplayName: now.Name.Text(), Model: now.Model, Instructions: now.Instructions.Text(), Tools: now.Tools,
		Limits: in.Body.Limits.over(now.Limits), ExpectedRevision: &now.Revision, Egress: now.Egress,
	}
	set(&command.DisplayName, in.Body.Name)
	set(&command.Model, in.Body.Model)
	set(&command.Instructions, in.Body.Instructions)
	set(&command.Tools, in.Body.Tools)
	switch {
	case in.Body.EgressFromSpace && in.Body.Egress != nil:
		return nil, fault.Field("egress_from_space", "true beside egress: give one of them")
	case in.Body.EgressFromSpace || in.Body.Egress != nil:
		command.Egress = in.Body.Egress
	}
	if in.Body.ExpectedRevision != nil {
		command.ExpectedRevision = in.Body.ExpectedRevision
	}
	result, err := a.execute(ctx, command, "", nil)
	if err != nil {
		return nil, err
	}
	version, err := a.version(ctx, agent.Stream(row.ID, row.SpaceID), result)
	if err != nil {
		return nil, err
	}
	return reply(AgentRevised{Agent: row.ID, Revision: version, Version: version}), nil
}

func set[T any](to *T, given *T) {
	if given != nil {
		*to = *given
	}
}

type revisionsIn struct {
	OneAgent
	PageIn
}

func (a *API) revisions(ctx context.Context, in *revisionsIn) (*answer[List[Agent]], error) {
	row, err := a.agent(ctx, in.Agent)
	if err != nil {
		return nil, err
	}
	from, err := in.from("revision")
	if err != nil {
		return nil, err
	}
	all, err := a.revisionsBefore(ctx, row, min(from.n, row.Revision+1), in.Limit+1)
	if err != nil {
		return nil, err
	}
	return page("revision", in.Limit, all, func(r Agent) Agent { return r }, func(r Agent) place { return place{n: r.Revision, at: r.RevisedAt} }), nil
}

// revisionsBefore reads revisions newest first. The stream has one event per revision, so the version of each is
// its number.
func (a *API) revisionsBefore(ctx context.Context, row read.Agent, before int64, limit int) ([]Agent, error) {
	after := max(0, before-1-int64(limit))
	if before <= after+1 {
		return nil, nil
	}
	records, err := a.DB.Stream(ctx, row.ID, after, int(before-1-after))
	if err != nil {
		return nil, err
	}
	all := make([]Agent, 0, len(records))
	for i := range records {
		e, err := a.DB.Decode(ctx, &records[i])
		if err != nil {
			return nil, err
		}
		if r, ok := e.(agent.Revised); ok {
			all = append(all, Agent{
				AgentSummary: AgentSummary{ID: row.ID, Space: row.SpaceID, Revision: r.Revision, Name: text(r.Name), Model: r.Model, RevisedAt: records[i].RecordedAt},
				Instructions: text(r.Instructions), Tools: append([]string{}, r.Tools...), Limits: r.Limits, RevisedBy: records[i].Actor, Egress: r.Egress,
			})
		}
	}
	slices.Reverse(all)
	return all, nil
}

// text is null for what was erased.
func text(s event.Sealed) *string {
	if !s.Readable() {
		return nil
	}
	plain := s.Text()
	return &plain
}
