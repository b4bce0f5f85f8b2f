package audit

import (
	"context"
	"fmt"
	"math"

	"cairn/db"
	"cairn/db/internal/logq"
	"cairn/domain/event"
)

// foldBatch is how many events are read, and written, at once.
const foldBatch = 1000

// source gives the log's records in some order, a batch at a time; an empty batch is the end.
type source func(ctx context.Context) ([]event.Record, error)

// positions reads from a position to another one, both as the log has them. It moves after along, so that
// a later source goes on there.
func positions(q *logq.Queries, after *int64, until int64) source {
	return func(ctx context.Context) ([]event.Record, error) {
		rows, err := q.EventsUpTo(ctx, logq.EventsUpToParams{After: *after, Until: until, Lim: foldBatch})
		if err != nil {
			return nil, fmt.Errorf("log after %d: %w", *after, err)
		}
		records := make([]event.Record, len(rows))
		for i := range rows {
			if rows[i].Position != *after+1 {
				return nil, noEvent(*after+1, fmt.Sprintf("position %d as the next one", rows[i].Position))
			}
			records[i] = db.RecordOf(&rows[i].LogEvent, rows[i].Position)
			*after = rows[i].Position
		}
		return records, nil
	}
}

// noEvent is the finding of a fold that meets a gap: what the projections must equal is not there to compare with.
func noEvent(position int64, found string) *Broken {
	return broken("the log has no event here, run 'cairn log verify'", "one", found).at(position)
}

// unsequenced reads what is committed and waits for a position. Only a snapshot has it consistent with the
// positions before.
func unsequenced(q *logq.Queries) source {
	after := int64(math.MinInt64)
	return func(ctx context.Context) ([]event.Record, error) {
		rows, err := q.EventsUnsequenced(ctx, logq.EventsUnsequencedParams{After: after, Lim: foldBatch})
		if err != nil {
			return nil, fmt.Errorf("events without a position: %w", err)
		}
		records := make([]event.Record, len(rows))
		for i := range rows {
			records[i] = db.RecordOf(&rows[i].LogEvent, 0)
			after = rows[i].Seq
		}
		return records, nil
	}
}

// byStream reads every event, whole streams one after the other.
func byStream(q *logq.Queries) source {
	at := logq.EventsByStreamParams{Version: math.MaxInt64, Lim: foldBatch}
	for i := range at.StreamID {
		at.StreamID[i] = 0xff
	}
	return func(ctx context.Context) ([]event.Record, error) {
		rows, err := q.EventsByStream(ctx, at)
		if err != nil {
			return nil, fmt.Errorf("log by stream: %w", err)
		}
		records := make([]event.Record, len(rows))
		for i := range rows {
			records[i] = db.RecordOf(&rows[i], 0)
			at.StreamID, at.Version = rows[i].StreamID, rows[i].Version
		}
		return records, nil
	}
}

// byStreamUpTo reads the events that have positions up to and with one, in the order of byStream. It needs no
// snapshot: what is appended meanwhile has later positions.
func byStreamUpTo(q *logq.Queries, until int64) source {
	at := logq.EventsByStreamUpToParams{Version: math.MaxInt64, Until: until, Lim: foldBatch}
	for i := range at.StreamID {
		at.StreamID[i] = 0xff
	}
	return func(ctx context.Context) ([]event.Record, error) {
		rows, err := q.EventsByStreamUpTo(ctx, at)
		if err != nil {
			return nil, fmt.Errorf("log by stream up to %d: %w", until, err)
		}
		records := make([]event.Record, len(rows))
		for i := range rows {
			records[i] = db.RecordOf(&rows[i], 0)
			at.StreamID, at.Version = rows[i].StreamID, rows[i].Version
		}
		return records, nil
	}
}

// byID reads the events of a list, in its order.
func byID(q *logq.Queries, ids []event.ID) source {
	return func(ctx context.Context) ([]event.Record, error) {
		n := min(len(ids), foldBatch)
		if n == 0 {
			return nil, nil
		}
		rows, err := q.EventsByID(ctx, ids[:n])
		if err != nil {
			return nil, fmt.Errorf("events by id: %w", err)
		}
		ids = ids[n:]
		records := make([]event.Record, len(rows))
		for i := range rows {
			records[i] = db.RecordOf(&rows[i].LogEvent, rows[i].Position)
		}
		return records, nil
	}
}

// chain reads one source after the other.
func chain(sources ...source) source {
	return func(ctx context.Context) ([]event.Record, error) {
		for len(sources) > 0 {
			records, err := sources[0](ctx)
			if err != nil || len(records) > 0 {
				return records, err
			}
			sources = sources[1:]
		}
		return nil, nil
	}
}

// whole is the log in an order, as the snapshot of q has it. after is where positions begin.
func whole(q *logq.Queries, order Order, after *int64) source {
	if order == ByStream {
		return byStream(q)
	}
	return chain(positions(q, after, math.MaxInt64), unsequenced(q))
}
