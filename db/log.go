package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cairn/db/internal/logq"
	"cairn/domain/event"
)

// Scope narrows a reading of the log. The zero Scope is the whole log; at most one of Space and Topic may be set.
type Scope struct {
	Space event.ID
	Topic event.ID
	Kinds []string // with Space: only events of these kinds; nil: of all
}

// Since returns up to limit records after a position, in the order of their positions. Positions become
// visible in order, so a reader that keeps the last one it saw misses nothing.
func (d *DB) Since(ctx context.Context, after int64, scope Scope, limit int) ([]event.Record, error) {
	var records []event.Record
	var err error
	switch {
	case !scope.Topic.IsZero():
		var rows []logq.EventsSinceOfTopicRow
		rows, err = d.log.EventsSinceOfTopic(ctx, logq.EventsSinceOfTopicParams{TopicID: scope.Topic, After: after, Lim: int32(limit)})
		for i := range rows {
			records = append(records, RecordOf(&rows[i].LogEvent, rows[i].Position))
		}
	case !scope.Space.IsZero() && scope.Kinds != nil:
		var rows []logq.EventsSinceOfSpaceKindsRow
		rows, err = d.log.EventsSinceOfSpaceKinds(ctx, logq.EventsSinceOfSpaceKindsParams{SpaceID: scope.Space, After: after, Kinds: scope.Kinds, Lim: int32(limit)})
		for i := range rows {
			records = append(records, RecordOf(&rows[i].LogEvent, rows[i].Position))
		}
	case !scope.Space.IsZero():
		var rows []logq.EventsSinceOfSpaceRow
		rows, err = d.log.EventsSinceOfSpace(ctx, logq.EventsSinceOfSpaceParams{SpaceID: scope.Space, After: after, Lim: int32(limit)})
		for i := range rows {
			records = append(records, RecordOf(&rows[i].LogEvent, rows[i].Position))
		}
	default:
		var rows []logq.EventsSinceRow
		rows, err = d.log.EventsSince(ctx, logq.EventsSinceParams{After: after, Lim: int32(limit)})
		for i := range rows {
			records = append(records, RecordOf(&rows[i].LogEvent, rows[i].Position))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("log after %d: %w", after, err)
	}
	return records, nil
}

// Stream returns up to limit records of one stream after a version. Their Position is zero while they wait
// for one.
func (d *DB) Stream(ctx context.Context, stream event.ID, after int64, limit int) ([]event.Record, error) {
	rows, err := d.log.EventsWithPosition(ctx, logq.EventsWithPositionParams{StreamID: stream, Version: after, Lim: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", stream, err)
	}
	records := make([]event.Record, len(rows))
	for i := range rows {
		records[i] = RecordOf(&rows[i].LogEvent, rows[i].Position)
	}
	return records, nil
}

// StreamSince returns up to limit records of one stream after a position.
func (d *DB) StreamSince(ctx context.Context, stream event.ID, after int64, limit int) ([]event.Record, error) {
	rows, err := d.log.EventsOfStreamSince(ctx, logq.EventsOfStreamSinceParams{StreamID: stream, After: after, Lim: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("stream %s after %d: %w", stream, after, err)
	}
	records := make([]event.Record, len(rows))
	for i := range rows {
		records[i] = RecordOf(&rows[i].LogEvent, rows[i].Position)
	}
	return records, nil
}

// Decode turns a record into its event, with sealed fields opened or, where the key is gone, erased.
func (d *DB) Decode(ctx context.Context, r *event.Record) (event.Event, error) {
	return (&Opener{registry: d.registry, sealer: d.sealer}).Decode(ctx, r)
}

// Identity says which log this is and how far it goes.
type Identity struct {
	LogID       event.ID `json:"log_id"`
	Incarnation int64    `json:"incarnation"`
	Head        int64    `json:"head"` // the last position given
}

// Identity reads the log's identity and head.
func (d *DB) Identity(ctx context.Context) (Identity, error) {
	row, err := d.log.LogIdentity(ctx)
	if err != nil {
		return Identity{}, fmt.Errorf("log identity: %w", err)
	}
	return Identity{LogID: row.LogID, Incarnation: row.Incarnation, Head: row.Head}, nil
}

// IsNotFound reports whether a query of one row found none.
func IsNotFound(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// IsUnreachable reports whether the database did not answer, or took no connection, so that the same call may
// work later.
func IsUnreachable(err error) bool {
	if err == nil || IsNotFound(err) {
		return false
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return connecting || broken(err)
}
