package event

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"cairn/domain/fault"
)

// Upcast turns the data of one schema into that of the next.
type Upcast func(data json.RawMessage) (json.RawMessage, error)

// Definition describes one event kind at its current schema.
type Definition struct {
	Kind    string
	Schema  int16
	Type    reflect.Type
	Upcasts []Upcast // Upcasts[i] turns schema i+1 into i+2
	Fields  []SealedField
}

// Define describes an event type. The current schema is one more than the number of upcasts. It panics on
// a declaration that can never work: definitions are made once, at start.
func Define[T Event](upcasts ...Upcast) Definition {
	var zero T
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("event %s: want a struct type, got %s", zero.Kind(), t))
	}
	if !strings.Contains(zero.Kind(), ".") {
		panic(fmt.Sprintf("event %s: a kind is <stream kind>.<past tense>", zero.Kind()))
	}
	return Definition{Kind: zero.Kind(), Schema: int16(len(upcasts) + 1), Type: t, Upcasts: upcasts, Fields: sealedFields(t)}
}

// Registry knows every aggregate and every event kind.
type Registry struct {
	aggregates map[string]Aggregate
	kinds      map[string]Definition
}

// NewRegistry collects aggregates. It panics when two claim the same name, or an event the wrong aggregate.
func NewRegistry(aggregates ...Aggregate) *Registry {
	r := &Registry{aggregates: map[string]Aggregate{}, kinds: map[string]Definition{}}
	for _, a := range aggregates {
		if _, taken := r.aggregates[a.Kind]; taken {
			panic("aggregate " + a.Kind + " is declared twice")
		}
		r.aggregates[a.Kind] = a
		for _, d := range a.Events {
			if _, taken := r.kinds[d.Kind]; taken || StreamKind(d.Kind) != a.Kind {
				panic("event " + d.Kind + " is declared twice or by the wrong aggregate " + a.Kind)
			}
			r.kinds[d.Kind] = d
		}
	}
	return r
}

// Aggregate returns the aggregate of a stream kind.
func (r *Registry) Aggregate(kind string) (Aggregate, bool) {
	a, ok := r.aggregates[kind]
	return a, ok
}

// Aggregates returns all aggregates in the order of their kinds.
func (r *Registry) Aggregates() []Aggregate {
	all := make([]Aggregate, 0, len(r.aggregates))
	for _, a := range r.aggregates {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b Aggregate) int { return strings.Compare(a.Kind, b.Kind) })
	return all
}

// Definition returns the definition of an event kind.
func (r *Registry) Definition(kind string) (Definition, bool) {
	d, ok := r.kinds[kind]
	return d, ok
}

// Decode turns stored data of any known schema into the event of the current schema. The sealed fields
// are closed: whoever holds the keys opens them.
func (r *Registry) Decode(kind string, schema int16, data json.RawMessage) (Event, error) {
	d, ok := r.kinds[kind]
	if !ok {
		return nil, fault.New(fault.Unavailable, "unknown_event_kind",
			"event kind %.80q is not known to this version: run the version of Cairn that wrote it, or a later one", kind)
	}
	if schema < 1 || schema > d.Schema {
		return nil, fault.New(fault.Unavailable, "unknown_event_schema",
			"event %s has schema %d, this version knows 1 to %d: run the version of Cairn that wrote it, or a later one", kind, schema, d.Schema)
	}
	for i := schema; i < d.Schema; i++ {
		var err error
		if data, err = d.Upcasts[i-1](data); err != nil {
			return nil, fmt.Errorf("event %s: upcast from schema %d: %w", kind, i, err)
		}
	}
	value := reflect.New(d.Type)
	if err := json.Unmarshal(data, value.Interface()); err != nil {
		return nil, fmt.Errorf("event %s, schema %d: %w", kind, d.Schema, err)
	}
	return value.Elem().Interface().(Event), nil
}
