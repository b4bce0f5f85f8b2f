package api

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"cairn/domain/event"
	"cairn/domain/fault"
)

const codeInvalidCursor = "invalid_cursor"

// PageIn is what every list takes. Parts of inputs are exported because huma sees only those.
type PageIn struct {
	Limit  int    `query:"limit" default:"50" minimum:"1" maximum:"200" doc:"How many items at most."`
	Cursor string `query:"cursor" maxLength:"128" doc:"next_cursor of the page before. Opaque: it is no position in the log."`
}

// List is one page.
type List[T any] struct {
	Items      []T     `json:"items" nullable:"false"`
	NextCursor *string `json:"next_cursor" doc:"For the page after this one; null at the end."`
}

// place is where a page ended: a time with an id, or a number.
type place struct {
	at time.Time
	id event.ID
	n  int64
}

// start is before everything, newest first.
var start = place{at: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), n: 1<<62 - 1}

// from reads the cursor of a list of the given name.
func (p PageIn) from(list string) (place, error) {
	if p.Cursor == "" {
		first := start
		for i := range first.id {
			first.id[i] = 0xff
		}
		return first, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	parts := strings.Split(string(raw), "|")
	if err != nil || len(parts) != 4 || parts[0] != list {
		return place{}, badCursor()
	}
	micros, err1 := strconv.ParseInt(parts[1], 10, 64)
	id, err2 := event.ParseID(parts[2])
	n, err3 := strconv.ParseInt(parts[3], 10, 64)
	// Within what the database can hold as a time: 1970 to 9999.
	if err1 != nil || err2 != nil || err3 != nil || micros < 0 || micros > start.at.UnixMicro() {
		return place{}, badCursor()
	}
	return place{at: time.UnixMicro(micros).UTC(), id: id, n: n}, nil
}

func badCursor() error {
	return fault.New(fault.Invalid, codeInvalidCursor, "the cursor is not one of this list: give next_cursor of its last page, or leave it out to begin anew")
}

func (p place) cursor(list string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + "|" + strconv.FormatInt(p.at.UnixMicro(), 10) + "|" + p.id.String() + "|" + strconv.FormatInt(p.n, 10)))
}

// page cuts what was read with one row more than asked for, which tells whether there is another page.
func page[R, T any](list string, limit int, rows []R, show func(R) T, end func(R) place) *answer[List[T]] {
	out := List[T]{Items: make([]T, 0, min(limit, len(rows)))}
	for i, row := range rows {
		if i == limit {
			next := end(rows[i-1]).cursor(list)
			out.NextCursor = &next
			break
		}
		out.Items = append(out.Items, show(row))
	}
	return reply(out)
}
