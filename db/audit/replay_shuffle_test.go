package audit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
	"cairn/db/internal/projectq"
	"cairn/db/projection"

	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
)

// TestAnyOrderOfTheStreamsGivesTheSameRows is the rule that lets rows be written in the append: the order of
// commits, of positions and of a rebuild differ.
func TestAnyOrderOfTheStreamsGivesTheSameRows(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	busyTeam(t, d, plainly)
	team, _ := busyTeam(t, d, plainly)
	eraseSpace(t, d, team)
	for seed := range uint64(10) {
		if err := audit.VerifyShuffled(t.Context(), options(base), rand.New(rand.NewPCG(seed, 2))); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestShufflingFindsAnApplyThatReadsTwoStreams shows that the shuffle can fail: a title that a run overwrites
// depends on which of both streams comes first.
func TestShufflingFindsAnApplyThatReadsTwoStreams(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("the live rows depend on the order of arrival")
	mixed := func(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error {
		err := projection.Apply(ctx, q, r, e)
		if queued, ok := e.(run.Queued); ok {
			err = errors.Join(err, q.ConversationTurnEnded(ctx, projectq.ConversationTurnEndedParams{ID: queued.Conversation, At: r.RecordedAt, Version: 1}))
		}
		return err
	}
	busyTeam(t, base.Open(t, dbtest.Server, func(o *db.Options) { o.Project = mixed }), plainly)
	o := options(base)
	o.Project = mixed
	found := 0
	for seed := range uint64(5) {
		if err := audit.VerifyShuffled(t.Context(), o, rand.New(rand.NewPCG(seed, 2))); err != nil {
			different, ok := errors.AsType[*audit.Different](err)
			if !ok || different.Table != conversation.Kind {
				t.Fatalf("seed %d: %v", seed, err)
			}
			found++
		}
	}
	if found == 0 {
		t.Error("no shuffle shows the dependence")
	}
}
