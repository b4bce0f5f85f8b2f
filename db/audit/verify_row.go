package audit

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/domain/event"
)

// rowColumns are a place in the log (a row of log_position or unsequenced, p) and its event, e.
const rowColumns = `p.position, p.event_id, p.space_id, p.topic_id, p.stream_id,
	e.id, e.stream_id, e.version, e.space_id, e.topic_id, e.kind, e.schema, e.data, e.actor, e.command_id,
	e.cause_id, e.trace_id, e.recorded_at, e.leaf_version, e.leaf_hash`

// The two kinds of place. They are read here and not by a generated query, which would hold a page of
// events, each up to 1 MiB, in memory.
const (
	placedRows = `SELECT ` + rowColumns + `
FROM (SELECT * FROM log.log_position WHERE position > $1 ORDER BY position LIMIT $2) p
LEFT JOIN log.event e ON e.id = p.event_id ORDER BY p.position`
	waitingRows = `SELECT ` + rowColumns + `
FROM (SELECT u.*, lp.position FROM log.unsequenced u LEFT JOIN log.log_position lp ON lp.event_id = u.event_id) p
LEFT JOIN log.event e ON e.id = p.event_id ORDER BY p.seq`
)

// row is one place in the log.
type row struct {
	position             int64 // 0: none
	event                event.ID
	space, topic, stream event.ID
	record               *event.Record // nil: there is no such event
}

// binaryFormat asks for PostgreSQL's binary form of every column, which this file decodes itself.
var binaryFormat = func() (formats pgx.QueryResultFormats) {
	for range 20 {
		formats = append(formats, pgx.BinaryFormatCode)
	}
	return formats
}()

// eachRow streams rows to fn. A row and its data are valid until fn returns.
func eachRow(ctx context.Context, tx pgx.Tx, fn func(*row) error, sql string, args ...any) error {
	rows, err := tx.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe, binaryFormat}, args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var r row
	var record event.Record
	for rows.Next() {
		if err := decodeRow(rows.RawValues(), &r, &record); err != nil {
			return broken("columns", "each of its type, and none of them null", err).in(&r)
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
	return rows.Err()
}

func decodeRow(raw [][]byte, r *row, record *event.Record) error {
	d := decoder{raw: raw}
	*r = row{}
	if d.raw[0] != nil {
		r.position = d.int64()
	} else {
		d.raw = d.raw[1:]
	}
	r.event, r.space, r.topic, r.stream = d.id(), d.id(), d.id(), d.id()
	if d.raw[0] == nil {
		return d.err
	}
	*record = event.Record{Position: r.position}
	record.ID, record.StreamID, record.Version = d.id(), d.id(), d.int64()
	record.SpaceID, record.TopicID = d.id(), d.id()
	record.Kind, record.Schema, record.Data, record.Actor = string(d.next()), d.int16(), d.next(), string(d.next())
	record.CommandID, record.CauseID, record.TraceID = d.id(), d.id(), string(d.next())
	record.RecordedAt = d.time()
	record.LeafVersion, record.LeafHash = d.int16(), d.next()
	r.record = record
	return d.err
}

// decoder takes the columns one by one and keeps the first error.
type decoder struct {
	raw [][]byte
	err error
}

// next refuses null: to a hash it would be the same as an empty text.
func (d *decoder) next() []byte {
	value := d.raw[0]
	d.raw = d.raw[1:]
	if value == nil {
		d.err = cmp.Or(d.err, errNull)
	}
	return value
}

var errNull = errors.New("null")

func (d *decoder) sized(n int) []byte {
	value := d.next()
	if len(value) != n {
		d.err = cmp.Or(d.err, fmt.Errorf("%d bytes where %d belong", len(value), n))
		return make([]byte, n)
	}
	return value
}

func (d *decoder) id() event.ID { return event.ID(d.sized(16)) }
func (d *decoder) int64() int64 { return int64(binary.BigEndian.Uint64(d.sized(8))) }
func (d *decoder) int16() int16 { return int16(binary.BigEndian.Uint16(d.sized(2))) }

// time reads microseconds since 2000-01-01. "infinity" wraps around to a time that no event has.
func (d *decoder) time() time.Time {
	const since1970 = 946_684_800_000_000
	return time.UnixMicro(d.int64() + since1970).UTC()
}
