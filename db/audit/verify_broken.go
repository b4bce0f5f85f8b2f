package audit

import (
	"fmt"
	"strings"

	"cairn/domain/event"
)

// Broken is the first difference between the log and what it must be. Fields that do not apply are empty.
type Broken struct {
	Position *int64    `json:"position"` // the first bad position; null when it has none
	EventID  *event.ID `json:"event_id"`
	Stream   string    `json:"stream"` // "run/ID"
	What     string    `json:"what"`
	Expected string    `json:"expected"`
	Found    string    `json:"found"`
}

func (b *Broken) Error() string {
	var where []string
	if b.Position != nil {
		where = append(where, fmt.Sprintf("position %d", *b.Position))
	}
	if b.EventID != nil {
		where = append(where, "event "+b.EventID.String())
	}
	if b.Stream != "" {
		where = append(where, "stream "+b.Stream)
	}
	text := b.What
	if len(where) > 0 {
		text = strings.Join(where, ", ") + ": " + text
	}
	if b.Expected != "" || b.Found != "" {
		text += fmt.Sprintf(": expected %s, found %s", b.Expected, b.Found)
	}
	return text
}

// broken begins a finding; at, of and stream say where.
func broken(what string, expected, found any) *Broken {
	return &Broken{What: what, Expected: fmt.Sprint(expected), Found: fmt.Sprint(found)}
}

func (b *Broken) at(position int64) *Broken {
	b.Position = &position
	return b
}

func (b *Broken) of(r *event.Record) *Broken {
	if r.Position > 0 {
		b.at(r.Position)
	}
	b.Stream = r.Stream().String()
	return b.event(r.ID)
}

func (b *Broken) event(id event.ID) *Broken {
	b.EventID = &id
	return b
}

// in says where a row of the log lies.
func (b *Broken) in(r *row) *Broken {
	if r.record != nil {
		return b.of(r.record)
	}
	if r.position > 0 {
		b.at(r.position)
	}
	return b.event(r.event)
}
