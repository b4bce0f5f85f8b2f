package torture

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"cairn/db"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// Plan is what one process does.
type Plan struct {
	Process string
	Writers int
	Anvils  int
	Seed    uint64
	Pause   time.Duration // mean pause between two appends of one writer
}

// Ack is an event that its writer was told is in the log.
type Ack struct {
	ID       event.ID
	Stream   event.ID
	Version  int64
	Process  string
	Began    time.Time
	Answered time.Time
	Shared   bool // on an anvil
}

// Acks writes acknowledgements, one line each in one write, so that a kill -9 loses none that was answered.
type Acks struct {
	mu  sync.Mutex
	out io.Writer
}

// NewAcks writes to out.
func NewAcks(out io.Writer) *Acks { return &Acks{out: out} }

func (a *Acks) add(records []event.Record, process string, began, answered time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range records {
		r := &records[i]
		shared := event.StreamKind(r.Kind) == KindAnvil
		if _, err := fmt.Fprintf(a.out, "ack %s %s %d %s %d %d %t\n", r.ID, r.StreamID, r.Version, process, began.UnixNano(), answered.UnixNano(), shared); err != nil {
			return err
		}
	}
	return nil
}

// ParseAck reads a line that Acks wrote.
func ParseAck(line string) (Ack, error) {
	var a Ack
	var id, stream string
	var began, answered int64
	if _, err := fmt.Sscanf(line, "ack %s %s %d %s %d %d %t", &id, &stream, &a.Version, &a.Process, &began, &answered, &a.Shared); err != nil {
		return a, fmt.Errorf("acknowledgement %q: %w", line, err)
	}
	var err error
	if a.ID, err = event.ParseID(id); err != nil {
		return a, err
	}
	a.Stream, err = event.ParseID(stream)
	a.Began, a.Answered = time.Unix(0, began), time.Unix(0, answered)
	return a, err
}

// Write strikes with all writers until ctx ends. What was begun is finished; the first breakdown is answered.
func Write(ctx context.Context, d *db.DB, plan Plan, acks *Acks) error {
	errs := make(chan error, plan.Writers)
	for i := range plan.Writers {
		go func() {
			w := &writer{db: d, plan: plan, acks: acks, index: i, rng: rand.New(rand.NewPCG(plan.Seed, uint64(i)))}
			errs <- w.run(ctx)
		}()
	}
	var first error
	for range plan.Writers {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

type writer struct {
	db      *db.DB
	plan    Plan
	acks    *Acks
	index   int
	rng     *rand.Rand
	n       int64
	began   time.Time // of the append under way
	private event.Ref
	version int64
}

func (w *writer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		w.began = time.Now()
		records, err := w.strike(context.WithoutCancel(ctx))
		if err != nil {
			return fmt.Errorf("%s, writer %d: %w", w.plan.Process, w.index, err)
		}
		if err := w.acks.add(records, w.plan.Process, w.began, time.Now()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(w.rng.Int64N(2 * int64(w.plan.Pause)))):
		}
	}
	return nil
}

// strike takes one of the ways into the log.
func (w *writer) strike(ctx context.Context) ([]event.Record, error) {
	switch way := w.rng.IntN(10); {
	case way < 4:
		return w.note(ctx, 1+w.rng.IntN(3))
	case way < 7:
		return w.execute(ctx, false)
	case way < 8:
		return w.execute(ctx, true)
	default:
		return w.raw(ctx)
	}
}

func (w *writer) blow(count int64) Blow {
	w.n++
	return Blow{Process: w.plan.Process, Writer: w.index, N: w.n, Count: count}
}

func (w *writer) meta() event.Meta {
	return event.Meta{Actor: event.WorkerActor(w.plan.Process), At: db.Now(), CommandID: event.ID(uuid.Must(uuid.NewV7()))}
}

// note appends to the writer's own stream, a new one every fifty events.
func (w *writer) note(ctx context.Context, n int) ([]event.Record, error) {
	w.refill()
	change := event.Change{Stream: w.private}
	for i := range n {
		change.Events = append(change.Events, Noted{w.blow(w.version + int64(i) + 1)})
	}
	records, err := w.db.Append(ctx, w.meta(), db.Expected{Change: change, Version: w.version})
	w.version += int64(len(records))
	return records, err
}

func (w *writer) refill() {
	if w.version == 0 || w.version > 50 {
		w.private, w.version = Private(event.ID(uuid.Must(uuid.NewV7()))), 0
	}
}

// anvil prefers the first ones: some are hotter than others.
func (w *writer) anvil() event.Ref { return Anvil(w.rng.IntN(1 + w.rng.IntN(w.plan.Anvils))) }

func (w *writer) execute(ctx context.Context, both bool) ([]event.Record, error) {
	c := Strike{On: w.anvil(), Blow: w.blow(0)}
	if both {
		w.refill()
		c.Also = w.private
	}
	result, err := w.db.Execute(ctx, c, w.meta())
	if err == nil && both {
		w.version++
	}
	return result.Records, err
}

// raw reads an anvil's version and appends at it, until nobody was faster.
func (w *writer) raw(ctx context.Context) ([]event.Record, error) {
	on, b := w.anvil(), w.blow(0)
	for {
		_, version, err := w.db.Load(ctx, on)
		if err != nil {
			return nil, err
		}
		b.Count, w.began = version+1, time.Now() // having lost a race is not waiting
		records, err := w.db.Append(ctx, w.meta(), db.Expected{Change: event.Change{Stream: on, Events: []event.Event{Struck{b}}}, Version: version})
		if !fault.Is(err, fault.Conflict) {
			return records, err
		}
		time.Sleep(time.Duration(w.rng.Int64N(int64(5 * time.Millisecond))))
	}
}
