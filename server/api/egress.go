package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"cairn/db/read"
	"cairn/domain/egress"
	"cairn/domain/event"
	"cairn/domain/space"
)

// SpaceEgress is what agents of a space reach at most, and by default.
type SpaceEgress struct {
	Space   event.ID       `json:"space_id" format:"uuid"`
	Egress  *egress.Policy `json:"egress,omitempty" doc:"Absent: agents are bounded by their own policy and the workers' ceiling alone, and reach nothing by default."`
	Version int64          `json:"version" doc:"Of the space."`
}

type spaceEgressIn struct {
	Space event.ID `path:"space" format:"uuid"`
	Body  struct {
		Egress egress.Policy `json:"egress"`
	}
}

// OneSpace is the path of one.
type OneSpace struct {
	Space event.ID `path:"space" format:"uuid"`
}

func (a *API) egressRoutes() {
	register(a, route("GET /spaces/{space}/egress", "space-egress-get", "What agents of a space reach at most"), a.spaceEgress)
	bound := route("PUT /spaces/{space}/egress", "space-egress-set", "Say what agents of a space reach at most")
	bound.Description = "Owners and admins. Agents without a policy of their own get this one; of the others, what lies outside fails their runs by name. Runs keep what they were queued with."
	register(a, bound, a.boundEgress)
	free := withStatus(route("DELETE /spaces/{space}/egress", "space-egress-clear", "Take the bound of a space away"), http.StatusNoContent)
	free.Description = "Owners and admins. Agents without a policy of their own reach nothing then."
	register(a, free, a.freeEgress)
}

func (a *API) spaceEgress(ctx context.Context, in *OneSpace) (*answer[SpaceEgress], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	folded, version, err := a.DB.Load(ctx, space.Stream(in.Space))
	if err != nil {
		return nil, err
	}
	now, _ := folded.(space.State)
	return reply(SpaceEgress{Space: in.Space, Egress: now.Egress, Version: version}), nil
}

func (a *API) boundEgress(ctx context.Context, in *spaceEgressIn) (*answer[SpaceEgress], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	result, err := a.execute(ctx, space.BoundEgress{Space: in.Space, Egress: &in.Body.Egress}, "", nil)
	if err != nil {
		return nil, err
	}
	version, err := a.version(ctx, space.Stream(in.Space), result)
	if err != nil {
		return nil, err
	}
	return reply(SpaceEgress{Space: in.Space, Egress: &in.Body.Egress, Version: version}), nil
}

func (a *API) freeEgress(ctx context.Context, in *OneSpace) (*struct{}, error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	_, err := a.execute(ctx, space.BoundEgress{Space: in.Space}, "", nil)
	return nil, err
}

// Egress is what the sandboxes of a run asked for outside.
type Egress struct {
	Allowed   *int64           `json:"allowed" doc:"Requests let through. null: none was recorded; see the report for whether there was a way out."`
	Refused   *int64           `json:"refused" doc:"Requests that the worker's proxy refused. What the kernel refuses it does not tell, so it is not counted."`
	Decisions []EgressDecision `json:"decisions" nullable:"false" doc:"The newest, of at most 500."`
}

// EgressDecision is one decision over equal requests of about the same time.
type EgressDecision struct {
	At      time.Time `json:"at"`
	Allowed bool      `json:"allowed"`
	Rule    string    `json:"rule" doc:"Tier and host of the rule that allowed it; empty when refused."`
	Reason  string    `json:"reason" doc:"Of the refusal, as a code; empty when allowed."`
	Host    string    `json:"host" doc:"As it was asked for."`
	Port    int       `json:"port" doc:"0: unknown."`
	Method  string    `json:"method" doc:"CONNECT for a tunnel, or for a connection that was refused."`
	Path    *string   `json:"path" doc:"Without the query. null: not seen."`
	Count   int64     `json:"count"`
}

const (
	shownBatches   = 50
	shownDecisions = 500
)

// egress reads what was decided last. Erased decisions are counted and not shown.
func (a *API) egress(ctx context.Context, row read.Run) (Egress, error) {
	e := Egress{Allowed: row.EgressAllowed, Refused: row.EgressRefused, Decisions: []EgressDecision{}}
	batches, err := a.DB.Read().RunEgressPage(ctx, read.RunEgressPageParams{RunID: row.ID, Lim: shownBatches})
	if err != nil {
		return e, fmt.Errorf("egress of run %s: %w", row.ID, err)
	}
	for _, b := range batches {
		var decisions []EgressDecision
		if len(b.Decisions) > 0 {
			if err := json.Unmarshal(b.Decisions, &decisions); err != nil {
				return e, fmt.Errorf("egress of run %s: %w", row.ID, err)
			}
		}
		for _, d := range decisions {
			if len(e.Decisions) == shownDecisions {
				return e, nil
			}
			d.At = b.DecidedAt.UTC()
			e.Decisions = append(e.Decisions, d)
		}
	}
	return e, nil
}
