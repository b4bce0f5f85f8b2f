// Package projection keeps the read tables equal to a fold of the log.
//
// Apply writes the rows of one event. It runs inside the append that records the event, and again in every
// rebuild: same code, same rows. So it only writes (it is queued into a batch and cannot read), and uses
// neither clock nor chance nor the position; what it writes depends on the record alone. A row depends on one
// stream, so any order that keeps each stream's order gives the same rows. Text is plain in the tables; a
// sealed field whose key was destroyed is written as null, and the event of the erasure clears what stands.
//
// It may import domain and the queries generated for it.
package projection

import (
	"context"
	"fmt"
	"strings"

	"cairn/db/internal/projectq"
	"cairn/domain/account"
	"cairn/domain/agent"
	"cairn/domain/claim"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/file"
	"cairn/domain/run"
	"cairn/domain/space"
	"cairn/domain/task"
)

// Apply writes what one event changes in the read tables.
func Apply(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
	switch event.StreamKind(r.Kind) {
	case account.Kind:
		return applyAccount(ctx, q, r, e)
	case claim.Kind:
		return applyClaim(ctx, q, r, e)
	case space.Kind:
		return applySpace(ctx, q, r, e)
	case agent.Kind:
		return applyAgent(ctx, q, r, e)
	case conversation.Kind:
		return applyConversation(ctx, q, r, e)
	case file.Kind:
		return applyFile(ctx, q, r, e)
	case task.Kind:
		return applyTask(ctx, q, r, e)
	case run.Kind:
		return applyRun(ctx, q, r, e)
	}
	return unknown(r)
}

func unknown(r *event.Record) error {
	return fmt.Errorf("no projection knows event kind %s", r.Kind)
}

// text is the column of a sealed field: null when there is none or its key is gone.
func text(s event.Sealed) *string {
	if !s.Readable() {
		return nil
	}
	plain := s.Text()
	return &plain
}

// lower is the column that a search compares: it and what is looked for are folded by the same code.
func lower(s event.Sealed) *string {
	plain := text(s)
	if plain == nil {
		return nil
	}
	folded := strings.ToLower(*plain)
	return &folded
}
