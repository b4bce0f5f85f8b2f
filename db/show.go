package db

import (
	"context"
	"encoding/json"
	"time"

	"cairn/domain/event"
)

// Line is an event as scripts and people see it, one JSON object a line. Its fields are stable.
type Line struct {
	Position int64           `json:"position"` // 0 while the event waits for one
	Stream   string          `json:"stream"`   // "run/ID"
	Version  int64           `json:"version"`
	Kind     string          `json:"kind"`
	Schema   int16           `json:"schema"`
	At       string          `json:"at"` // RFC 3339 with microseconds, UTC
	Actor    string          `json:"actor"`
	Data     json.RawMessage `json:"data"` // sealed fields as plain text, {"erased":true} once their key is gone
}

// lineTime is RFC 3339 with exactly six digits of a second's fraction.
const lineTime = "2006-01-02T15:04:05.000000Z07:00"

// Show opens a record for those who may read it.
func (d *DB) Show(ctx context.Context, r *event.Record) (Line, error) {
	e, err := d.Decode(ctx, r)
	if err != nil {
		return Line{}, err
	}
	shown, err := event.MapSealed(e, func(_ string, _ bool, s event.Sealed) (event.Sealed, error) { return s.Shown(), nil })
	if err != nil {
		return Line{}, err
	}
	data, err := json.Marshal(shown)
	if err != nil {
		return Line{}, err
	}
	line := ShowSealed(r)
	line.Data = data
	return line, nil
}

// ShowSealed shows a record with its data exactly as stored: it needs no key and no knowledge of the kind.
func ShowSealed(r *event.Record) Line {
	return Line{
		Position: r.Position, Stream: r.Stream().String(), Version: r.Version, Kind: r.Kind, Schema: r.Schema,
		At: r.RecordedAt.UTC().Format(lineTime), Actor: r.Actor, Data: r.Data,
	}
}

// Now is the time as commands carry it: UTC, in microseconds.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
