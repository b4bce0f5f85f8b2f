package catalog_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"cairn/domain/catalog"
	"cairn/domain/dispatch"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
	"cairn/domain/space"
)

// failer is what testing.T and rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// stream is one stream of the world: its events as they were stored, and their fold.
type stream struct {
	ref    event.Ref
	events []event.Event
	state  any
}

// world is the smallest log there can be. It stores what decisions answer through the same steps as the
// real one (seal, encode, decode, open, fold) and checks what must hold for every command on the way.
type world struct {
	t        failer
	registry *event.Registry
	streams  map[event.ID]*stream
	order    []event.ID // of streams, by their first event
	erased   map[event.ID]bool
	jobs     map[event.ID]int // per run: jobs that no claim has used up
	now      time.Time
}

func newWorld(t failer) *world {
	return &world{
		t: t, registry: catalog.Registry(), streams: map[event.ID]*stream{}, erased: map[event.ID]bool{},
		jobs: map[event.ID]int{}, now: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
	}
}

// view answers states for one command and refuses what the command did not name.
type view struct {
	w    *world
	refs []event.Ref
}

func (v view) State(ref event.Ref) any {
	if !slices.Contains(v.refs, ref) {
		v.w.t.Fatalf("a decision looked at %s, which it did not name", ref)
	}
	return v.w.state(ref)
}

func (w *world) state(ref event.Ref) any {
	if s, ok := w.streams[ref.ID]; ok && s.ref == ref {
		return s.state
	}
	a, ok := w.registry.Aggregate(ref.Kind)
	if !ok {
		w.t.Fatalf("no aggregate %q", ref.Kind)
	}
	return a.Initial()
}

// execute decides and stores. A fault is answered; anything else that goes wrong fails the test.
func (w *world) execute(actor string, c event.Command) error {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	meta := event.Meta{Actor: actor, At: w.now}
	refs := c.Streams()
	before := w.snapshot(refs)
	changes, err := c.Decide(view{w, refs}, meta)
	again, errAgain := c.Decide(view{w, refs}, meta)
	if !reflect.DeepEqual(changes, again) || !reflect.DeepEqual(err, errAgain) {
		w.t.Fatalf("%s decided differently the second time: %v %v, %v %v", c.Name(), changes, err, again, errAgain)
	}
	if after := w.snapshot(refs); before != after {
		w.t.Fatalf("deciding %s altered a state:\n%s\n%s", c.Name(), before, after)
	}
	if err != nil {
		w.checkFault(c, changes, err)
		return err
	}
	sealed, err := w.seal(c, refs, changes)
	if err != nil {
		return err
	}
	for _, change := range sealed {
		w.append(change)
	}
	return nil
}

func (w *world) checkFault(c event.Command, changes []event.Change, err error) {
	f, ok := err.(*fault.Fault)
	if !ok || f.Kind == "" || f.Code == "" || f.Message == "" {
		w.t.Fatalf("%s refused without a complete fault: %#v", c.Name(), err)
	}
	if len(changes) != 0 {
		w.t.Fatalf("%s refused (%v) and changed something: %v", c.Name(), err, changes)
	}
}

func (w *world) snapshot(refs []event.Ref) string {
	text := ""
	for _, ref := range refs {
		text += ref.String() + encode(w.t, w.state(ref)) + "\n"
	}
	return text
}

func encode(t failer, value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("%T does not become JSON: %v", value, err)
	}
	return string(data)
}

// seal stands in for the vault: it refuses a destroyed key, as the vault does.
func (w *world) seal(c event.Command, refs []event.Ref, changes []event.Change) ([]event.Change, error) {
	var sealed []event.Change
	for i, change := range changes {
		ref := change.Stream
		other := func(o event.Change) bool { return o.Stream.ID == ref.ID }
		if !slices.Contains(refs, ref) || len(change.Events) == 0 || slices.ContainsFunc(changes[:i], other) {
			w.t.Fatalf("%s: %s is not a named stream that changes once: %v", c.Name(), ref, change)
		}
		if s, ok := w.streams[ref.ID]; ok && s.ref != ref {
			return nil, fault.New(fault.Conflict, "stream_exists", "%s belongs elsewhere", ref)
		}
		events := make([]event.Event, len(change.Events))
		for j, e := range change.Events {
			if event.StreamKind(e.Kind()) != ref.Kind {
				w.t.Fatalf("%s appends %s to %s", c.Name(), e.Kind(), ref)
			}
			var err error
			if events[j], err = w.sealEvent(ref, e); err != nil {
				return nil, err
			}
		}
		sealed = append(sealed, event.Change{Stream: ref, Events: events})
	}
	return sealed, nil
}

func (w *world) sealEvent(ref event.Ref, e event.Event) (event.Event, error) {
	return event.MapSealed(e, func(path string, account bool, s event.Sealed) (event.Sealed, error) {
		key := ref.Space
		if account {
			key = ref.ID
		}
		if !s.Pending() || key.IsZero() {
			w.t.Fatalf("%s.%s: want plain text and a key, got pending %v, key %s", e.Kind(), path, s.Pending(), key)
		}
		if w.erased[key] {
			return s, fault.New(fault.NotFound, "content_erased", "key %s was destroyed", key)
		}
		return s.WithBox(event.Box{Key: key, Size: int64(len(s.Text())), Data: []byte("box:" + s.Text())}), nil
	})
}

func (w *world) open(e event.Event) event.Event {
	opened, _ := event.MapSealed(e, func(_ string, _ bool, s event.Sealed) (event.Sealed, error) {
		box, _ := s.Box()
		if w.erased[box.Key] {
			return s.AsErased(), nil
		}
		return s.Opened(string(box.Data[len("box:"):])), nil
	})
	return opened
}

func (w *world) append(change event.Change) {
	s, ok := w.streams[change.Stream.ID]
	if !ok {
		a, _ := w.registry.Aggregate(change.Stream.Kind)
		s = &stream{ref: change.Stream, state: a.Initial()}
		w.streams[change.Stream.ID] = s
		w.order = append(w.order, change.Stream.ID)
	}
	for _, e := range change.Events {
		stored := encode(w.t, e)
		decoded, err := w.registry.Decode(e.Kind(), 1, json.RawMessage(stored))
		if err != nil {
			w.t.Fatalf("%s does not decode: %v\n%s", e.Kind(), err, stored)
		}
		if round := encode(w.t, decoded); round != stored {
			w.t.Fatalf("%s changes on its way through the log:\n%s\n%s", e.Kind(), stored, round)
		}
		decoded = w.open(decoded)
		w.checkEvent(s, decoded)
		w.evolve(s, decoded)
		s.events = append(s.events, decoded)
		for _, job := range dispatch.For(s.ref, decoded) {
			w.checkJob(job)
			w.jobs[job.Run]++
		}
		w.erase(s.ref, decoded)
	}
}

// checkJob holds a job against the run that it names. A run that is queued in the same append may come later.
func (w *world) checkJob(job dispatch.Job) {
	s, ok := w.streams[job.Run]
	if !ok {
		return
	}
	target := run.TargetOf(s.ref, s.state.(run.State))
	want := dispatch.Job{
		Kind: dispatch.KindRun, Run: target.Run, Conversation: target.Conversation, Task: target.Task, Space: target.Space, Queue: s.state.(run.State).Queue,
	}
	if job != want {
		w.t.Fatalf("job %+v, want %+v", job, want)
	}
}

func (w *world) evolve(s *stream, e event.Event) {
	a, _ := w.registry.Aggregate(s.ref.Kind)
	old, before := s.state, encode(w.t, s.state)
	s.state = a.Evolve(old, e)
	// Another fold from the old state must not reach the memory of the first one either.
	fresh := encode(w.t, s.state)
	a.Evolve(old, reflect.Zero(reflect.TypeOf(e)).Interface().(event.Event))
	if after := encode(w.t, old); before != after {
		w.t.Fatalf("%s altered the old state:\n%s\n%s", e.Kind(), before, after)
	}
	if after := encode(w.t, s.state); fresh != after {
		w.t.Fatalf("%s, folded twice from one state, altered the first result:\n%s\n%s", e.Kind(), fresh, after)
	}
}

// erase destroys the key and folds everything anew, as a process does that reads the log afterwards.
func (w *world) erase(ref event.Ref, e event.Event) {
	_, isSpace := e.(space.Erased)
	if !isSpace && e.Kind() != "account.erased" {
		return
	}
	w.erased[ref.ID] = true
	for _, s := range w.streams {
		a, _ := w.registry.Aggregate(s.ref.Kind)
		s.state = a.Initial()
		for i, e := range s.events {
			s.events[i] = w.open(e)
			s.state = a.Evolve(s.state, s.events[i])
		}
	}
}

func (w *world) must(actor string, c event.Command) {
	w.t.Helper()
	if err := w.execute(actor, c); err != nil {
		w.t.Fatalf("%s as %s: %v", c.Name(), actor, err)
	}
}

// id makes a readable id: a kind of thing and its number.
func id(kind string, n int) event.ID {
	return event.NameID(event.ID{1}, fmt.Appendf(nil, "%s %d", kind, n))
}
