package torture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/db/internal/projectq"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// Named is an event of a stream whose state is the list of its names.
type Named struct {
	Name string `json:"name"`
}

// Kind implements event.Event.
func (Named) Kind() string { return "list.named" }

func useList(o *db.Options) {
	o.Registry = event.NewRegistry(event.Aggregate{
		Kind: "list", Shared: true, Events: []event.Definition{event.Define[Named]()},
		Initial: func() any { return []string(nil) },
		Evolve:  func(s any, e event.Event) any { return append(slices.Clone(s.([]string)), e.(Named).Name) },
	})
	o.Project = func(_ context.Context, _ *projectq.Queries, _ *event.Record, e event.Event) error {
		if e.(Named).Name == "poison" {
			return errors.New("no row for this")
		}
		return nil
	}
}

// wish is a command that a test writes on the spot.
type wish struct {
	on     event.Ref
	decide func(names []string) ([]string, error)
}

func (wish) Name() string                   { return "list.name" }
func (w wish) Streams() []event.Ref         { return []event.Ref{w.on} }
func (w wish) Answer() any                  { return "" }
func (w wish) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }
func (w wish) Decide(view event.View, _ event.Meta) ([]event.Change, error) {
	names, err := w.decide(event.StateOf[[]string](view, w.on))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	change := event.Change{Stream: w.on}
	for _, name := range names {
		change.Events = append(change.Events, Named{name})
	}
	return []event.Change{change}, nil
}

func list() event.Ref {
	id := event.ID(uuid.Must(uuid.NewV7()))
	return event.Ref{Kind: "list", ID: id, Topic: id}
}

func name(n string) func([]string) ([]string, error) {
	return func([]string) ([]string, error) { return []string{n}, nil }
}

// together executes the wishes so that all but the first are decided in one batch, in their order.
func together(t *testing.T, d *db.DB, on event.Ref, decides ...func([]string) ([]string, error)) []error {
	t.Helper()
	errs := make([]error, len(decides))
	entered, queued := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	post := func(i int, decide func([]string) ([]string, error)) {
		wg.Go(func() { _, errs[i] = d.Execute(context.Background(), wish{on, decide}, dbtest.Meta(event.System)) })
		time.Sleep(10 * time.Millisecond)
	}
	post(0, func(names []string) ([]string, error) {
		once.Do(func() { close(entered); <-queued })
		return decides[0](names)
	})
	<-entered
	for i, decide := range decides[1:] {
		post(i+1, decide)
	}
	close(queued)
	wg.Wait()
	return errs
}

func TestARefusalRestsOnWhatIsInTheLog(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("events of a kind that only this test knows")
	d, other := base.Open(t, dbtest.Server, useList), base.Open(t, dbtest.Server, useList)
	on := list()
	tries := 0
	errs := together(t, d, on, name("first"),
		func([]string) ([]string, error) { // wants the door closed, loses twice to another process and thinks better of it
			if tries++; tries > 2 {
				return nil, nil
			}
			if _, err := other.Execute(context.Background(), wish{on, name("stranger")}, dbtest.Meta(event.System)); err != nil {
				t.Error(err)
			}
			return []string{"closed"}, nil
		},
		func(names []string) ([]string, error) {
			if tries == 2 && slices.Contains(names, "closed") {
				return nil, fault.New(fault.Conflict, "closed", "it is closed")
			}
			return []string{"through"}, nil
		})
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("a command was refused for something that never came to be: %v", err)
	}
}

func TestOneBadCommandDoesNotTakeTheOthersAlong(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("events of a kind that only this test knows")
	d := base.Open(t, dbtest.Server, useList)
	on := list()
	errs := together(t, d, on, name("a"), name("b"), name("poison"), name("c"), name("NUL \x00"), name("d"))
	for i, err := range errs {
		if bad := i == 2 || i == 4; bad != (err != nil) {
			t.Errorf("command %d: %v", i, err)
		}
	}
	if !fault.HasCode(errs[4], "not_storable") {
		t.Errorf("NUL: %v", errs[4])
	}
	names, _, err := d.Load(t.Context(), on)
	if err != nil || len(names.([]string)) != 4 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestLocksOfManyStreamsLeaveConnectionsToAppend(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("events of a kind that only this test knows")
	d := base.Open(t, dbtest.Server, useList, func(o *db.Options) { o.MaxConns = 4 })
	other := base.Open(t, dbtest.Server, useList)
	began := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			on, tries := list(), 0
			_, err := d.Execute(context.Background(), wish{on, func([]string) ([]string, error) {
				if tries++; tries <= 1 { // as unlucky as it takes to lock
					if _, err := other.Append(context.Background(), dbtest.Meta(event.System), db.Expected{
						Change: event.Change{Stream: on, Events: []event.Event{Named{fmt.Sprint(tries)}}}, Version: int64(tries - 1),
					}); err != nil {
						t.Error(err)
					}
				}
				if tries == 2 {
					time.Sleep(50 * time.Millisecond) // while all get there
				}
				return []string{"mine"}, nil
			}}, dbtest.Meta(event.System))
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v: the holders of the locks waited for each other's connections", took)
	}
}
