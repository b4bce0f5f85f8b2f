package api

import (
	"context"
	"net/http"
	"slices"

	"cairn/db"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// Events are a stretch of the log.
type Events struct {
	LogID       event.ID  `json:"log_id" format:"uuid"`
	Incarnation int64     `json:"incarnation" doc:"One more each time the log was restored from a backup: then positions mean something else, start over."`
	Events      []db.Line `json:"events" nullable:"false"`
	NextAfter   int64     `json:"next_after" doc:"Ask with after=next_after for what comes next."`
	More        bool      `json:"more" doc:"There is more at once."`
}

type EventsIn struct {
	After int64 `query:"after" default:"0" minimum:"0" doc:"Position of the last event that you have; 0 for all."`
	Limit int   `query:"limit" default:"100" minimum:"1" maximum:"500" doc:"How many events are looked at."`
}

type spaceEventsIn struct {
	Space event.ID `path:"space" format:"uuid"`
	EventsIn
	Kinds []string `query:"kinds" maxItems:"50" doc:"Only these, like run.queued,run.succeeded."`
}

func (a *API) eventRoutes() {
	op := route("GET /spaces/{space}/events", "event-list", "Events of a space, in the order of the log")
	op.Description = "With kinds a page may be empty although there is more: go on from next_after."
	op.Errors = append(op.Errors, http.StatusConflict)
	register(a, op, a.spaceEvents)
}

func (a *API) spaceEvents(ctx context.Context, in *spaceEventsIn) (*answer[Events], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	for _, kind := range in.Kinds {
		if _, ok := a.DB.Registry().Definition(kind); !ok {
			return nil, fault.New(fault.Invalid, "unknown_kind", "%.64q is no kind of event: use kinds like run.queued", kind)
		}
	}
	return a.events(ctx, in.EventsIn, in.Kinds, func(after int64, limit int) ([]event.Record, error) {
		return a.DB.Since(ctx, after, db.Scope{Space: in.Space}, limit)
	})
}

// events reads a stretch with opened content. A cursor beyond the log answers 409 start_over.
func (a *API) events(ctx context.Context, in EventsIn, kinds []string, read func(after int64, limit int) ([]event.Record, error)) (*answer[Events], error) {
	identity, err := a.DB.Identity(ctx)
	if err != nil {
		return nil, err
	}
	if err := identity.Check(db.Cursor{Position: in.After}); err != nil {
		return nil, err
	}
	records, err := read(in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	out := Events{LogID: identity.LogID, Incarnation: identity.Incarnation, Events: []db.Line{}, NextAfter: in.After, More: len(records) == in.Limit}
	for i := range records {
		out.NextAfter = records[i].Position
		if len(kinds) > 0 && !slices.Contains(kinds, records[i].Kind) {
			continue
		}
		line, err := a.DB.Show(ctx, &records[i])
		if err != nil {
			return nil, err
		}
		out.Events = append(out.Events, line)
	}
	return reply(out), nil
}
