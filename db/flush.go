package db

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cairn/db/internal/logq"
	"cairn/db/internal/projectq"
	"cairn/domain/dispatch"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// MaxEvent is the largest stored form of one event, in bytes.
const MaxEvent = 1 << 20

// head is what an append expects of one stream and by how many events it moves it.
type head struct {
	stream   event.Ref
	expected int64
	n        int64
}

// flush is one append, complete before the first byte is sent.
type flush struct {
	heads    []head
	asserted map[event.ID]int64 // streams that were read, not written, at these versions
	locks    []int64            // advisory keys of streams with many writers
	records  []event.Record
	events   []event.Event // opened, for projections
	commands []logq.CommandInsertParams
	jobs     []dispatch.Job
	secrets  []secrets
	sealedBy map[event.ID]bool

	underLock bool // the caller holds the lock of a stream: nothing that waits for it may be in the way
}

// queue lets generated queries fill a batch instead of talking to the database.
type queue struct{ batch *pgx.Batch }

var errWriteOnly = errors.New("a batch only writes: reading inside an append is not possible")

func (q queue) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	q.batch.Queue(sql, args...)
	return pgconn.CommandTag{}, nil
}

func (q queue) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, errWriteOnly }

func (q queue) QueryRow(context.Context, string, ...any) pgx.Row { return failedRow{} }

func (q queue) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, errWriteOnly
}

type failedRow struct{}

func (failedRow) Scan(...any) error { return errWriteOnly }

// add seals the events of one change and appends them to the flush, after what the stream has already in it.
func (d *DB) add(ctx context.Context, f *flush, stream event.Ref, version int64, events []event.Event, meta event.Meta) error {
	for i, e := range events {
		definition, ok := d.registry.Definition(e.Kind())
		if !ok || event.StreamKind(e.Kind()) != stream.Kind {
			return fmt.Errorf("event %s is not declared for stream %s", e.Kind(), stream)
		}
		if err := storable(e); err != nil {
			return err
		}
		sealed, subjects, err := d.sealer.seal(ctx, stream, version+int64(i) == 0, e)
		if err != nil {
			return err
		}
		for _, subject := range subjects {
			f.sealedBy[subject] = true
		}
		data, err := json.Marshal(sealed)
		if err != nil {
			return fmt.Errorf("event %s: %w", e.Kind(), err)
		}
		if len(data) > MaxEvent {
			return fault.New(fault.Invalid, "event_too_large", "event %s takes %d bytes, at most %d are allowed: send less at once", e.Kind(), len(data), MaxEvent)
		}
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("event id: %w", err)
		}
		record := event.Record{
			ID: event.ID(id), StreamID: stream.ID, Version: version + int64(i) + 1, SpaceID: stream.Space, TopicID: stream.Topic,
			Kind: e.Kind(), Schema: definition.Schema, Data: data,
			Actor: meta.Actor, CommandID: meta.CommandID, CauseID: meta.CauseID, TraceID: meta.TraceID,
			RecordedAt: meta.At.UTC().Truncate(time.Microsecond), LeafVersion: event.LeafVersion,
		}
		record.LeafHash = event.Leaf(&record)
		f.records = append(f.records, record)
		f.events = append(f.events, sealed)
		f.jobs = append(f.jobs, dispatch.For(stream, sealed)...)
	}
	return nil
}

// batch lays the flush out in the order that its proofs need: gate, locks, checks, heads in id order,
// events, unsequenced rows, projections, the vault, command rows.
func (d *DB) batch(ctx context.Context, f *flush) (*pgx.Batch, error) {
	batch := &pgx.Batch{}
	log, project := logq.New(queue{batch}), projectq.New(queue{batch})
	subjects := make([]event.ID, 0, len(f.sealedBy))
	for subject := range f.sealedBy {
		subjects = append(subjects, subject)
	}
	erased := f.erased()
	if len(erased) > 0 {
		log.LogGateExclusive(ctx) // waits for every append under way: later ones find the key gone
	}
	log.LogGate(ctx, subjects)
	slices.Sort(f.locks)
	for _, key := range slices.Compact(f.locks) {
		log.StreamLock(ctx, key)
	}
	d.queueAsserts(ctx, log, f)
	slices.SortFunc(f.heads, func(a, b head) int { return a.stream.ID.Compare(b.stream.ID) })
	for _, h := range f.heads {
		log.StreamAdvance(ctx, logq.StreamAdvanceParams{
			ID: h.stream.ID, Kind: h.stream.Kind, SpaceID: h.stream.Space,
			TopicID: h.stream.Topic, Expected: h.expected, N: h.n,
		})
	}
	queueEvents(ctx, log, f.records)
	for i := range f.records {
		if err := d.project(ctx, project, &f.records[i], f.events[i]); err != nil {
			return nil, fmt.Errorf("projection of %s: %w", f.records[i].Kind, err)
		}
	}
	for _, subject := range erased {
		log.SubjectKeyDestroy(ctx, subject)
	}
	for i := range f.events {
		endCredentials(ctx, log, f.records[i].StreamID, f.events[i])
	}
	for _, queue := range f.secrets {
		queue(ctx, log)
	}
	for _, command := range f.commands {
		log.CommandInsert(ctx, command)
	}
	return batch, nil
}

// erased lists the subjects whose keys this append destroys.
func (f *flush) erased() []event.ID {
	var subjects []event.ID
	for i := range f.events {
		if _, ok := f.events[i].(event.Eraser); ok {
			subjects = append(subjects, f.records[i].StreamID)
		}
	}
	return subjects
}

func (d *DB) queueAsserts(ctx context.Context, log *logq.Queries, f *flush) {
	var params logq.StreamAssertParams
	for id, version := range f.asserted {
		params.Ids, params.Versions = append(params.Ids, id), append(params.Versions, version)
	}
	if len(params.Ids) > 0 {
		log.StreamAssert(ctx, params)
	}
}

func queueEvents(ctx context.Context, log *logq.Queries, records []event.Record) {
	var e logq.EventInsertParams
	for i := range records {
		r := &records[i]
		e.Ids, e.StreamIds, e.Versions = append(e.Ids, r.ID), append(e.StreamIds, r.StreamID), append(e.Versions, r.Version)
		e.SpaceIds, e.TopicIds = append(e.SpaceIds, r.SpaceID), append(e.TopicIds, r.TopicID)
		e.Kinds, e.Schemas, e.Datas = append(e.Kinds, r.Kind), append(e.Schemas, r.Schema), append(e.Datas, string(r.Data))
		e.Actors, e.CommandIds, e.CauseIds = append(e.Actors, r.Actor), append(e.CommandIds, r.CommandID), append(e.CauseIds, r.CauseID)
		e.TraceIds, e.RecordedAts = append(e.TraceIds, r.TraceID), append(e.RecordedAts, r.RecordedAt)
		e.LeafVersions, e.LeafHashes = append(e.LeafVersions, r.LeafVersion), append(e.LeafHashes, r.LeafHash)
	}
	log.EventInsert(ctx, e)
	log.UnsequencedInsert(ctx, logq.UnsequencedInsertParams{Ids: e.Ids, StreamIds: e.StreamIds, SpaceIds: e.SpaceIds, TopicIds: e.TopicIds})
}

// lockKey is the advisory key of a stream with many writers.
func lockKey(id event.ID) int64 {
	return int64(binary.BigEndian.Uint64(id[:8]) ^ binary.BigEndian.Uint64(id[8:]))
}

// refs lists the streams that the flush moves, for messages.
func (f *flush) refs() []event.Ref {
	refs := make([]event.Ref, len(f.heads))
	for i, h := range f.heads {
		refs[i] = h.stream
	}
	slices.SortFunc(refs, func(a, b event.Ref) int { return cmp.Compare(a.String(), b.String()) })
	return refs
}
