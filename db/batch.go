package db

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"cairn/db/internal/logq"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// maxAttempts bounds how often a batch is decided again after conflicts. The pause between attempts grows,
// so that the bound is reached only by a stream that others keep moving for many seconds.
const maxAttempts = 40

// patience bounds one batch: its callers' own deadlines are theirs, the log's work is not stopped by one of them.
const patience = 30 * time.Second

// executeBatch answers every request exactly once.
func (d *DB) executeBatch(batch []*request) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	open := alive(batch)
	for attempt := 0; len(open) > 0; attempt++ {
		if attempt == maxAttempts {
			answerAll(open, fault.New(fault.Unavailable, "too_many_conflicts", "%s: the stream kept moving through %d attempts: try again", open[0].streams[0], attempt))
			return
		}
		if attempt > 1 {
			time.Sleep(time.Duration(rand.Int64N(int64(min(1<<attempt, 16)) * int64(time.Millisecond))))
		}
		open = d.executeAlone(d.attemptLocked(ctx, open, attempt))
	}
}

// executeAlone carries out the requests that must not share an append, each by itself and without any lock of
// the batch, and returns the others.
func (d *DB) executeAlone(open []*request) []*request {
	together := open[:0:0]
	for _, r := range open {
		if !r.alone {
			together = append(together, r)
			continue
		}
		r.alone = false // by itself it is answered with its own error
		d.executeBatch([]*request{r})
	}
	return together
}

// lockAfter is the number of attempts after which a shared stream is locked before it is read, so that the
// next attempt cannot lose. One: behind a queue of writers every further guess at the version is lost as well
// (measured with 8 processes: p99 of an append 0.4 s, 2.5 s with three guesses, and a third fewer events). The
// lock's transaction holds no head and ends by itself after a second.
const lockAfter = 1

func (d *DB) attemptLocked(ctx context.Context, open []*request, attempt int) []*request {
	primary := open[0].streams[0]
	if aggregate, _ := d.registry.Aggregate(primary.Kind); !aggregate.Shared || attempt < lockAfter {
		return d.attempt(ctx, open, attempt > 0, 0)
	}
	select { // or the lock holders of many streams could take every connection, and none be left to append with
	case d.locking <- struct{}{}:
		defer func() { <-d.locking }()
	case <-ctx.Done():
		answerAll(open, ctx.Err())
		return nil
	}
	tx, err := d.pool.Begin(ctx)
	if err != nil {
		return d.attempt(ctx, open, true, 0)
	}
	defer tx.Rollback(ctx)
	if err := logq.New(tx).StreamLock(ctx, lockKey(primary.ID)); err != nil {
		return d.attempt(ctx, open, true, 0)
	}
	return d.attempt(ctx, open, true, lockKey(primary.ID))
}

func alive(batch []*request) []*request {
	open := batch[:0:0]
	for _, r := range batch {
		if r.ctx.Err() != nil {
			r.answer(Result{}, r.ctx.Err())
			continue
		}
		open = append(open, r)
	}
	return open
}

func answerAll(open []*request, err error) {
	for _, r := range open {
		r.answer(Result{}, err)
	}
}

// decided is a request whose decision waits for the append.
type decided struct {
	request *request
	answer  json.RawMessage
	from    int // its records in the flush
	to      int
}

// attempt decides the open requests and appends what they want. It answers what it can and returns the
// requests that must be decided again. held is the advisory key that the caller holds already.
func (d *DB) attempt(ctx context.Context, open []*request, fresh bool, held int64) []*request {
	v := d.newView()
	load := d.cached
	if fresh {
		load = d.reload
	}
	f := newFlush()
	f.underLock = held != 0
	var accepted []decided
	var again, twins, refused []*request
	var refusals []error
	keys := map[string]bool{}
	for _, r := range open {
		if err := load(ctx, v, r.streams); err != nil {
			r.answer(Result{}, err)
			continue
		}
		if name := r.meta.Actor + "\x00" + r.meta.Key; r.meta.Key != "" && keys[name] {
			twins = append(twins, r) // the same key in one batch: the later one reads the earlier one's answer
			continue
		}
		one, err := d.decide(ctx, f, v, r)
		switch {
		case err == nil && one.to > one.from:
			keys[r.meta.Actor+"\x00"+r.meta.Key] = true
			accepted = append(accepted, one)
		case err == nil && fresh:
			refused, refusals = append(refused, r), append(refusals, nil)
		case err != nil && (fresh || fault.KindOf(err) == ""):
			refused, refusals = append(refused, r), append(refusals, err)
		default:
			again = append(again, r) // a refusal from cached states is looked at again with fresh ones
		}
	}
	committed := true
	if len(accepted) > 0 {
		d.complete(f, v, held)
		var undone []*request
		undone, committed = d.commit(ctx, f, v, accepted)
		again = append(again, undone...)
	}
	if committed {
		d.answerRefused(ctx, refused, refusals)
	} else { // what they were refused for may never have come to be
		again = append(again, refused...)
	}
	twins, err := d.answerKnown(ctx, twins)
	if err != nil {
		answerAll(twins, err)
		return again
	}
	return append(again, twins...)
}

// reload fills the view with what the log holds now.
func (d *DB) reload(ctx context.Context, v *view, streams []event.Ref) error {
	for _, stream := range streams {
		if entry, ok := v.states[stream.ID]; ok {
			if err := entry.of(stream); err != nil {
				return err
			}
			continue
		}
		if err := d.refresh(ctx, v, stream); err != nil {
			return err
		}
	}
	return nil
}

// decide asks the command and puts its events into the flush.
func (d *DB) decide(ctx context.Context, f *flush, v *view, r *request) (decided, error) {
	changes, err := r.command.Decide(v, r.meta)
	if err != nil {
		return decided{}, err
	}
	answer, err := json.Marshal(r.command.Answer())
	if err != nil {
		return decided{}, fmt.Errorf("command %s: answer: %w", r.command.Name(), err)
	}
	records, jobs, before, base := len(f.records), len(f.jobs), maps.Clone(v.states), maps.Clone(v.base)
	for _, change := range changes {
		if _, ok := v.base[change.Stream.ID]; !ok {
			v.base[change.Stream.ID] = 0 // a stream that the command creates
		}
		if err := d.add(ctx, f, change.Stream, v.states[change.Stream.ID].version, change.Events, r.meta); err != nil {
			f.records, f.events, f.jobs, v.states, v.base = f.records[:records], f.events[:records], f.jobs[:jobs], before, base
			return decided{}, err
		}
		from := len(f.events) - len(change.Events)
		v.evolve(change.Stream, f.records[from:], f.events[from:])
	}
	one := decided{request: r, answer: answer, from: records, to: len(f.records)}
	if r.secrets != nil && one.to > one.from {
		f.secrets = append(f.secrets, r.secrets)
	}
	if r.meta.Key != "" && one.to > one.from {
		f.commands = append(f.commands, logq.CommandInsertParams{Actor: r.meta.Actor, Key: r.meta.Key, RequestMac: r.mac, Answer: answer, At: r.meta.At})
	}
	return one, nil
}

// commit sends the flush and answers the accepted requests, or returns them to be decided again. It tells
// whether what was decided is in the log.
func (d *DB) commit(ctx context.Context, f *flush, v *view, accepted []decided) ([]*request, bool) {
	err := d.send(ctx, f)
	if err == nil {
		d.settleStates(f, v)
		for _, one := range accepted {
			one.request.answer(Result{Answer: one.answer, Records: f.records[one.from:one.to:one.to]}, nil)
		}
		return nil, true
	}
	for id := range v.states {
		d.states.drop(id)
	}
	requests := make([]*request, len(accepted))
	for i, one := range accepted {
		requests[i] = one.request
	}
	if errors.Is(err, errDuplicate) {
		requests, err = d.answerKnown(ctx, requests)
	} else if errors.Is(err, errConflict) {
		err = nil
	}
	switch {
	case err == nil:
		return requests, false
	case len(requests) > 1 && ofContent(err):
		for _, r := range requests { // one of them cannot be written: it must not take the others with it
			r.alone = true
		}
		return requests, false
	default:
		answerAll(requests, err)
	}
	return nil, false
}

// ofContent reports whether an append failed for what it holds, so that less of it may succeed.
func ofContent(err error) bool {
	return !broken(err) && !fault.Is(err, fault.Unavailable) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// complete derives heads, locks and asserted versions from what the decisions read and wrote.
func (d *DB) complete(f *flush, v *view, held int64) {
	written := map[event.ID]bool{}
	for i := range f.records {
		stream := f.records[i].Stream()
		if written[stream.ID] {
			continue
		}
		written[stream.ID] = true
		base := v.base[stream.ID]
		f.heads = append(f.heads, head{stream: stream, expected: base, n: v.states[stream.ID].version - base})
		if aggregate, _ := d.registry.Aggregate(stream.Kind); aggregate.Shared && base > 0 && lockKey(stream.ID) != held {
			f.locks = append(f.locks, lockKey(stream.ID))
		}
	}
	for id, version := range v.base {
		if !written[id] {
			f.asserted[id] = version
		}
	}
}

func (d *DB) settleStates(f *flush, v *view) {
	for _, h := range f.heads {
		d.states.put(h.stream.ID, v.states[h.stream.ID], v.generation)
	}
	for i := range f.events {
		if _, ok := f.events[i].(event.Eraser); ok {
			d.forget(f.records[i].StreamID)
		}
	}
}
