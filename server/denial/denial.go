// Package denial records what was refused: each refusal of somebody who is known as one event of their account, but at
// most a few a minute, so that a flood cannot fill the log. The rest of the minute is one more event with a count.
// Refusals of nobody in particular are counted for metrics alone.
//
//	refused --known--> queue --fewer than Each this minute--> account.action_denied
//	   |                 \--more, or the queue is full--> count --once a minute--> account.denials_counted
//	   \--unknown--> metrics
//
// An answer never waits for it, and never fails with it: what cannot be recorded is counted, and recorded later.
//
// It may import db, domain and the standard library.
package denial

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cairn/db"
	"cairn/db/read"
	"cairn/domain/account"
	"cairn/domain/event"
	"cairn/domain/fault"
)

const (
	each    = 10 // events for one account and minute, beside the one that counts
	minute  = time.Minute
	waiting = 1024             // refusals that may wait to be recorded
	last    = 10 * time.Second // for what waits when the process stops
)

// Denial is one refusal of an account.
type Denial struct {
	Account event.ID
	Actor   string   // who tried: the account, or the system when somebody only named it
	Route   string   // a pattern, never what was asked for
	Rule    string   // code of the refusal
	Target  event.ID // what it was about; zero: nothing in particular

	// Exists is to be found out first: a try at something that does not exist is no refusal. Beyond what is recorded
	// one by one nobody asks, and such tries are counted too.
	Exists bool
	at     time.Time
}

// Options are what a recorder is made of.
type Options struct {
	DB     *db.DB
	Log    *slog.Logger
	Minute time.Duration // zero: a minute
	// Count, when not nil, is told of each refusal; known is whether it is of an account.
	Count func(known bool, rule string)
}

// Recorder takes refusals. It is safe for concurrent use. Run must be called for them to be recorded.
type Recorder struct {
	Options
	queue chan Denial

	mu      sync.Mutex
	tallies map[event.ID]*tally
}

// tally is what one account was refused in this minute.
type tally struct {
	events int       // that were recorded, or are about to be
	rest   int64     // that were not
	since  time.Time // when the first of the rest was
}

// New makes one that has recorded nothing.
func New(o Options) *Recorder {
	if o.Minute == 0 {
		o.Minute = minute
	}
	return &Recorder{Options: o, queue: make(chan Denial, waiting), tallies: map[event.ID]*tally{}}
}

// Anonymous counts a refusal of nobody in particular.
func (r *Recorder) Anonymous(rule string) {
	if r.Count != nil {
		r.Count(false, rule)
	}
}

// Known takes a refusal of an account, and returns at once.
func (r *Recorder) Known(d Denial) {
	if r.Count != nil {
		r.Count(true, d.Rule)
	}
	d.at = db.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tally(d.Account)
	if t.events < each {
		select {
		case r.queue <- d:
			return
		default:
		}
	}
	t.add(d.at, 1)
}

// tally finds or makes that of an account. The caller holds mu.
func (r *Recorder) tally(id event.ID) *tally {
	t := r.tallies[id]
	if t == nil {
		t = &tally{}
		r.tallies[id] = t
	}
	return t
}

func (t *tally) add(at time.Time, n int64) {
	if t.rest += n; t.since.IsZero() || at.Before(t.since) {
		t.since = at
	}
}

// Run records until ctx ends, and then what is left.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(r.Minute)
	defer tick.Stop()
	whole := context.WithoutCancel(ctx) // what was begun is not given up halfway
	for {
		select {
		case d := <-r.queue:
			r.record(whole, d)
		case <-tick.C:
			r.flush(whole)
		case <-ctx.Done():
			r.finish()
			return
		}
	}
}

func (r *Recorder) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), last)
	defer cancel()
	for {
		select {
		case d := <-r.queue:
			r.record(ctx, d)
		default:
			r.flush(ctx)
			return
		}
	}
}

// record appends one refusal, or counts it when there were enough of the account.
func (r *Recorder) record(ctx context.Context, d Denial) {
	if d.Exists {
		is, err := r.ofOthers(ctx, d)
		if err == nil && !is {
			return
		}
		if err != nil {
			r.keep(ctx, d, err)
			return
		}
	}
	r.mu.Lock()
	t := r.tally(d.Account)
	full := t.events >= each
	if full {
		t.add(d.at, 1)
	} else {
		t.events++
	}
	r.mu.Unlock()
	if full {
		return
	}
	c := account.RecordDenial{Account: d.Account, Route: d.Route, Rule: d.Rule}
	if !d.Target.IsZero() {
		c.Target = &d.Target
	}
	if _, err := r.DB.Execute(ctx, c, event.Meta{Actor: d.Actor, At: d.at}); err != nil {
		r.keep(ctx, d, err)
	}
}

// keep counts what could not be recorded now. An account that is gone has no stream to record it in.
func (r *Recorder) keep(ctx context.Context, d Denial, err error) {
	if fault.Is(err, fault.NotFound) {
		return
	}
	r.Log.WarnContext(ctx, "a refusal could not be recorded, it is counted", "rule", d.Rule, "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally(d.Account).add(d.at, 1)
}

// ofOthers reports whether the target is there, in a space where the account has no role.
func (r *Recorder) ofOthers(ctx context.Context, d Denial) (bool, error) {
	row, err := r.DB.Read().StreamOwner(ctx, read.StreamOwnerParams{AccountID: d.Account, ID: d.Target})
	if db.IsNotFound(err) {
		return false, nil
	}
	return err == nil && row.Role == nil, err
}

// flush records the counts of the minute that is over, and begins another one.
func (r *Recorder) flush(ctx context.Context) {
	r.mu.Lock()
	over := r.tallies
	r.tallies = map[event.ID]*tally{}
	r.mu.Unlock()
	for id, t := range over {
		if t.rest == 0 {
			continue
		}
		_, err := r.DB.Execute(ctx, account.CountDenials{Account: id, Denials: t.rest, Since: t.since}, event.Meta{Actor: event.System, At: db.Now()})
		if err == nil || fault.Is(err, fault.NotFound) {
			continue
		}
		r.Log.WarnContext(ctx, "refusals could not be recorded, they are counted again", "count", t.rest, "error", err)
		r.mu.Lock()
		r.tally(id).add(t.since, t.rest)
		r.mu.Unlock()
	}
}
