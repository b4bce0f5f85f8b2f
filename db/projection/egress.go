package projection

import (
	"context"
	"encoding/json"
	"errors"

	"cairn/db/internal/projectq"
	"cairn/domain/event"
	"cairn/domain/run"
)

func applyEgress(ctx context.Context, q *projectq.Queries, r *event.Record, e run.EgressDecided) error {
	decisions, err := egressDecisions(e.Decisions)
	return errors.Join(err,
		q.RunEgressDecided(ctx, projectq.RunEgressDecidedParams{ID: r.StreamID, Allowed: e.Allowed, Refused: e.Refused, Version: r.Version}),
		q.RunEgressInsert(ctx, projectq.RunEgressInsertParams{RunID: r.StreamID, Version: r.Version, SpaceID: r.SpaceID, DecidedAt: r.RecordedAt, Decisions: decisions}))
}

// egressDecisions are the elements of run_egress.decisions, as they were asked for. They are null as a whole once the space is erased: an erasure clears the column like that.
func egressDecisions(from []run.EgressDecision) (json.RawMessage, error) {
	var all []run.EgressWish
	for _, d := range from {
		host := text(d.Target)
		if host == nil {
			return nil, nil
		}
		all = append(all, run.EgressWish{Allowed: d.Allowed, Rule: d.Rule, Reason: d.Reason, Host: *host, Port: d.Port, Method: d.Method, Path: text(d.Path), Count: d.Count})
	}
	if len(all) == 0 {
		return nil, nil
	}
	return json.Marshal(all)
}
