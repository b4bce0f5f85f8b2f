package db

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"cairn/db/internal/logq"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// state is a folded stream. It is immutable: Evolve makes new ones.
type state struct {
	stream  event.Ref
	version int64
	value   any
	weight  int64 // bytes of the text that was folded into it: no less than it holds of it
}

// of keeps a caller from reaching a stream of another space, topic or kind by its bare id.
func (s state) of(want event.Ref) error {
	if s.version == 0 || s.stream == want {
		return nil
	}
	return fault.New(fault.NotFound, want.Kind+"_not_found", "there is no %s here", want)
}

// states caches folded streams of this process. A stale entry is harmless: the append checks versions, and
// refusals are never answered from the cache alone.
type states struct {
	mu         sync.Mutex
	entries    map[event.ID]state
	limit      int   // entries
	room       int64 // bytes, by weight
	weight     int64
	generation int // grows with each clear: what was folded before an erasure must not come back
}

func newStates(limit int, room int64) *states {
	return &states{entries: map[event.ID]state{}, limit: limit, room: room}
}

func (s *states) get(id event.ID) (state, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := s.entries[id]
	return entry, ok
}

// put keeps a state that was folded in the generation given, unless an erasure came between.
func (s *states) put(id event.ID, entry state, generation int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if generation != s.generation {
		return
	}
	if old, ok := s.entries[id]; ok && old.version > entry.version {
		return
	}
	s.remove(id)
	if entry.weight > s.room {
		return
	}
	for victim := range s.entries { // map order is random enough for a cache of folds
		if len(s.entries) < s.limit && s.weight+entry.weight <= s.room {
			break
		}
		s.remove(victim)
	}
	s.entries[id] = entry
	s.weight += entry.weight
}

func (s *states) remove(id event.ID) {
	s.weight -= s.entries[id].weight
	delete(s.entries, id)
}

func (s *states) drop(ids ...event.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.remove(id)
	}
}

func (s *states) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.entries)
	s.weight = 0
	s.generation++
}

func (s *states) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation
}

// weigh is how much memory an opened event may leave in a state. Text that lies in a blob is not in its data.
func weigh(r *event.Record, e event.Event) int64 {
	weight := int64(len(r.Data))
	if !bytes.Contains(r.Data, []byte(`"blob"`)) {
		return weight
	}
	_, _ = event.MapSealed(e, func(_ string, _ bool, field event.Sealed) (event.Sealed, error) {
		weight += int64(len(field.Text()))
		return field, nil
	})
	return weight
}

// view is what a batch of decisions sees: states as read, moved on by the decisions before.
type view struct {
	registry   *event.Registry
	states     map[event.ID]state
	base       map[event.ID]int64 // versions as read
	generation int                // of the cache, when the reading began
}

func (d *DB) newView() *view {
	return &view{registry: d.registry, states: map[event.ID]state{}, base: map[event.ID]int64{}, generation: d.states.now()}
}

// State implements event.View. A stream that the command did not name answers its initial state, which
// makes the mistake visible in the first test.
func (v *view) State(stream event.Ref) any {
	if entry, ok := v.states[stream.ID]; ok {
		return entry.value
	}
	aggregate, ok := v.registry.Aggregate(stream.Kind)
	if !ok {
		return nil
	}
	return aggregate.Initial()
}

// evolve moves a stream of the view on.
func (v *view) evolve(stream event.Ref, records []event.Record, events []event.Event) {
	aggregate, _ := v.registry.Aggregate(stream.Kind)
	entry, ok := v.states[stream.ID]
	if !ok {
		entry.value = aggregate.Initial()
	}
	entry.stream = stream
	for i, e := range events {
		entry.value = aggregate.Evolve(entry.value, e)
		entry.version++
		entry.weight += weigh(&records[i], e)
	}
	v.states[stream.ID] = entry
}

// view loads fresh states of the streams.
func (d *DB) view(ctx context.Context, streams []event.Ref) (*view, error) {
	v := d.newView()
	for _, stream := range streams {
		if err := d.refresh(ctx, v, stream); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// cached fills the view from the cache, loading only what is not there.
func (d *DB) cached(ctx context.Context, v *view, streams []event.Ref) error {
	for _, stream := range streams {
		entry, ok := v.states[stream.ID]
		if !ok {
			if entry, ok = d.states.get(stream.ID); ok {
				v.states[stream.ID], v.base[stream.ID] = entry, entry.version
			}
		}
		if ok {
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

// refresh folds what the log has beyond the cached state of a stream into the view and the cache.
func (d *DB) refresh(ctx context.Context, v *view, stream event.Ref) error {
	aggregate, ok := d.registry.Aggregate(stream.Kind)
	if !ok {
		return fmt.Errorf("stream %s: no aggregate of this kind", stream)
	}
	entry, ok := d.states.get(stream.ID)
	if !ok {
		entry = state{value: aggregate.Initial()}
	}
	rows, err := d.log.EventsAfterVersion(ctx, logq.EventsAfterVersionParams{StreamID: stream.ID, Version: entry.version})
	if err != nil {
		return fmt.Errorf("load %s: %w", stream, unreachable(err))
	}
	for i := range rows {
		r := RecordOf(&rows[i], 0)
		entry.stream, entry.version = r.Stream(), r.Version
		if err := entry.of(stream); err != nil {
			return err
		}
		e, err := d.Decode(ctx, &r)
		if err != nil {
			return err
		}
		entry.value = aggregate.Evolve(entry.value, e)
		entry.weight += weigh(&r, e)
	}
	if err := entry.of(stream); err != nil {
		return err
	}
	if entry.version > 0 {
		d.states.put(stream.ID, entry, v.generation)
	}
	v.states[stream.ID], v.base[stream.ID] = entry, entry.version
	return nil
}

// Load folds a stream from the log and answers its state and version; version 0 means that it does not exist.
func (d *DB) Load(ctx context.Context, stream event.Ref) (any, int64, error) {
	v, err := d.view(ctx, []event.Ref{stream})
	if err != nil {
		return nil, 0, err
	}
	entry := v.states[stream.ID]
	return entry.value, entry.version, nil
}
