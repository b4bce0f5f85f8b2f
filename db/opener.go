package db

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"cairn/db/internal/logq"
	"cairn/db/internal/projectq"
	"cairn/domain/event"
)

// Opener turns records into events with the keys that one connection sees. An audit opens the log with the
// keys of its own snapshot: a key that is destroyed meanwhile must not make its two sides differ.
type Opener struct {
	registry *event.Registry
	sealer   *sealer
}

// NewOpener reads keys through vault, with a cache of its own.
func NewOpener(keys *Keyring, blobs *BlobStore, registry *event.Registry, vault *logq.Queries) (*Opener, error) {
	s, err := newSealer(keys, vault, blobs)
	if err != nil {
		return nil, err
	}
	return &Opener{registry: registry, sealer: s}, nil
}

// Decode turns a record into its event, with sealed fields opened or, where the key is gone, erased.
func (o *Opener) Decode(ctx context.Context, r *event.Record) (event.Event, error) {
	e, err := o.registry.Decode(r.Kind, r.Schema, r.Data)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", r.ID, err)
	}
	if e, err = o.sealer.open(ctx, r.StreamID, e); err != nil {
		return nil, fmt.Errorf("event %s: %w", r.ID, err)
	}
	return e, nil
}

// ProjectInto gives the projections' queries, which queue into the batch instead of talking to a database.
func ProjectInto(batch *pgx.Batch) *projectq.Queries { return projectq.New(queue{batch}) }

// RecordOf turns a row of the log into a record; position 0 means that it has none yet.
func RecordOf(row *logq.LogEvent, position int64) event.Record {
	return event.Record{
		ID: row.ID, StreamID: row.StreamID, Version: row.Version, SpaceID: row.SpaceID, TopicID: row.TopicID,
		Kind: row.Kind, Schema: row.Schema, Data: row.Data, Actor: row.Actor, CommandID: row.CommandID, CauseID: row.CauseID,
		TraceID: row.TraceID, RecordedAt: row.RecordedAt.UTC(), LeafVersion: row.LeafVersion, LeafHash: row.LeafHash, Position: position,
	}
}
