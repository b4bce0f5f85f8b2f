package bench

import (
	"context"

	"cairn/db"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
)

// Name implements event.Command.
func (nudge) Name() string { return "bench.nudge" }

// Streams implements event.Command.
func (c nudge) Streams() []event.Ref { return []event.Ref{c.on} }

// Answer implements event.Command.
func (c nudge) Answer() any { return struct{}{} }

// Decide implements event.Command.
func (c nudge) Decide(event.View, event.Meta) ([]event.Change, error) {
	return []event.Change{{Stream: c.on, Events: []event.Event{conversation.TurnEnded{Turn: newID(), Run: newID(), Outcome: run.StatusCancelled}}}}, nil
}

// hot compares 32 writers of one conversation to 32 writers of one each, all through Execute.
func (b *bench) hot(ctx context.Context) ([]Result, error) {
	s := &series{name: "one hot stream through its mailbox, 32 writers", unit: "1/s", floor: "a stream for each", atLeast: 0.8}
	for range b.options.Rounds {
		hot, err := b.executeRate(ctx, 32, 1)
		if err != nil {
			return nil, err
		}
		each, err := b.executeRate(ctx, 32, 32)
		if err != nil {
			return nil, err
		}
		s.add(hot, each)
	}
	return results(s), nil
}

func (b *bench) executeRate(ctx context.Context, writers, streams int) (float64, error) {
	d, err := b.open(ctx, func(o *db.Options) {})
	if err != nil {
		return 0, err
	}
	defer d.Close()
	jobs, err := b.jobs(ctx, d, streams)
	if err != nil {
		return 0, err
	}
	return rate(ctx, writers, b.options.Length, func(ctx context.Context, i int) error {
		_, err := d.Execute(ctx, nudge{jobs[i%streams].conversation}, meta(event.System))
		return err
	})
}
