package db

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"cairn/db/internal/logq"
	"cairn/domain/fault"
)

// answerRefused answers requests that append nothing. One with a key may be the repetition of a command
// that was carried out and is refused now because of that: it gets the first answer.
func (d *DB) answerRefused(ctx context.Context, refused []*request, refusals []error) {
	open, err := d.answerKnown(ctx, refused)
	waiting := map[*request]bool{}
	for _, r := range open {
		waiting[r] = true
	}
	for i, r := range refused {
		switch {
		case err != nil:
			r.answer(Result{}, err)
		case !waiting[r]:
		case refusals[i] != nil:
			r.answer(Result{}, refusals[i])
		default:
			answer, err := json.Marshal(r.command.Answer())
			r.answer(Result{Answer: answer}, err)
		}
	}
}

// answerKnown answers the requests whose key was used before, and returns the others.
func (d *DB) answerKnown(ctx context.Context, requests []*request) ([]*request, error) {
	var params logq.CommandAnswerParams
	for _, r := range requests {
		if r.meta.Key != "" {
			params.Actors, params.Keys = append(params.Actors, r.meta.Actor), append(params.Keys, r.meta.Key)
		}
	}
	if len(params.Keys) == 0 {
		return requests, nil
	}
	rows, err := d.log.CommandAnswer(ctx, params)
	if err != nil {
		return requests, fmt.Errorf("idempotency: %w", unreachable(err))
	}
	known := map[string]logq.CommandAnswerRow{}
	for _, row := range rows {
		known[row.Actor+"\x00"+row.Key] = row
	}
	var open []*request
	for _, r := range requests {
		row, ok := known[r.meta.Actor+"\x00"+r.meta.Key]
		switch {
		case !ok || r.meta.Key == "":
			open = append(open, r)
		case !bytes.Equal(row.RequestMac, r.mac):
			r.answer(Result{}, fault.New(fault.Conflict, "idempotency_key_reused",
				"the idempotency key %q was used for another request: use a new key for a new request", r.meta.Key))
		default:
			r.answer(Result{Answer: row.Answer, Repeated: true}, nil)
		}
	}
	return open, nil
}
