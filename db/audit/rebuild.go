package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/internal/logq"
)

// Rebuilt is a second set of projections beside the live ones, in a schema of its own.
//
//	building --Rebuild--> caught up --CatchUp--> caught up
//	    |                     |----------Swap--> live (the old tables wait in another schema for DropOld)
//	    v                     v
//	  dropped <-----------  Close
//
// A session lock on the schema's name says that its process is alive: the schema of a killed one is dropped
// by the next rebuild.
type Rebuilt struct {
	b *build
}

// Rebuild folds the log up to and with a position into a fresh schema; 0 means to the head, and then what
// was appended meanwhile, until less than a batch is left. When it fails, or the context ends, the schema is
// dropped.
func Rebuild(ctx context.Context, o ReplayOptions, until int64) (*Rebuilt, error) {
	b, err := startBuild(ctx, o, "")
	if err != nil {
		return nil, err
	}
	r := &Rebuilt{b: b}
	if err := r.fill(ctx, until); err != nil {
		return nil, errors.Join(err, b.drop())
	}
	return r, nil
}

func (r *Rebuilt) fill(ctx context.Context, until int64) error {
	if until == 0 {
		return r.CatchUp(ctx)
	}
	head, err := r.b.head(ctx)
	if err != nil {
		return err
	}
	if until < 0 || until > head {
		return fmt.Errorf("position %d is not in the log, which ends at %d: give one from 1 to %d", until, head, head)
	}
	r.b.partial = true
	return r.b.foldUntil(ctx, until)
}

// CatchUp folds what was appended since, until less than a batch is left.
func (r *Rebuilt) CatchUp(ctx context.Context) error {
	if r.b.partial {
		return fmt.Errorf("the rebuild was asked to stop at position %d: start one without an end", r.b.position)
	}
	for {
		before := r.b.events
		if err := r.b.foldUntil(ctx, math.MaxInt64); err != nil || r.b.events-before < foldBatch {
			return err
		}
	}
}

// Schema is where the tables are.
func (r *Rebuilt) Schema() string { return r.b.schema }

// Position is the last one folded.
func (r *Rebuilt) Position() int64 { return r.b.position }

// Events is how many events were folded.
func (r *Rebuilt) Events() int64 { return r.b.events }

// Compare folds the rest in one snapshot, compares with the live tables in it, and takes the rest back.
func (r *Rebuilt) Compare(ctx context.Context) (ReplayReport, error) {
	if r.b.partial {
		return ReplayReport{}, fmt.Errorf("the rebuild stopped at position %d and the live tables did not: only a rebuild to the head can be compared", r.b.position)
	}
	var report ReplayReport
	err := r.b.compareLive(ctx, ByPosition, &report)
	return report, err
}

// Close drops the schema, unless it was swapped in.
func (r *Rebuilt) Close() error { return r.b.drop() }

// build is a schema under construction and the two connections that fill it.
type build struct {
	o        ReplayOptions
	schema   string
	reader   *pgx.Conn
	writer   *pgx.Conn // its search path is the schema; holds the lock on its name
	position int64     // the last one whose rows are committed
	events   int64
	partial  bool // ends before the head, on purpose
	borrowed bool // the schema was there and stays
	swapped  bool
}

// startBuild makes a schema, or borrows an empty one.
func startBuild(ctx context.Context, o ReplayOptions, scratch string) (*build, error) {
	b := &build{o: o.withDefaults(), schema: scratch, borrowed: scratch != ""}
	if !b.borrowed {
		b.schema = newBuildName()
	}
	if err := b.open(ctx); err != nil {
		return nil, errors.Join(err, b.drop())
	}
	return b, nil
}

func (b *build) open(ctx context.Context) (err error) {
	if b.reader, err = connect(ctx, b.o.URL, ""); err != nil {
		return err
	}
	if b.writer, err = connect(ctx, b.o.URL, b.schema); err != nil {
		return err
	}
	// The lock comes first: nobody may take the schema for an abandoned one.
	if held, err := lockSchema(ctx, b.writer, b.schema); err != nil || !held {
		return errors.Join(fmt.Errorf("schema %s is taken by another process", b.schema), err)
	}
	if !b.borrowed {
		if err := b.make(ctx); err != nil {
			return err
		}
	}
	// Tables without statistics that grow inside one transaction: a plan made for the empty table would scan
	// it all for each row. What is lost in a crash is dropped anyway.
	_, err = b.writer.Exec(ctx, "SET enable_seqscan = off; SET synchronous_commit = off")
	return err
}

func (b *build) make(ctx context.Context) error {
	if err := dropAbandoned(ctx, b.reader); err != nil {
		return err
	}
	if err := db.MigrateView(ctx, b.o.URL, b.schema); err != nil {
		return fmt.Errorf("schema %s: %w", b.schema, err)
	}
	return nil
}

// drop ends the build and takes its schema away. It works also when the caller's context has ended.
func (b *build) drop() error {
	if b.swapped || b.borrowed || b.writer == nil {
		return hangUp(b.reader, b.writer)
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropPatience)
	defer cancel()
	err := hangUp(b.writer) // ends a statement that was cut off; the lock goes with it
	conn := b.reader
	if conn.IsClosed() {
		var cerr error
		if conn, cerr = connect(ctx, b.o.URL, ""); cerr != nil {
			return errors.Join(err, cerr)
		}
	}
	return errors.Join(err, dropSchema(ctx, conn, b.schema), hangUp(conn))
}

func (b *build) head(ctx context.Context) (int64, error) {
	identity, err := logq.New(b.reader).LogIdentity(ctx)
	if err != nil {
		return 0, fmt.Errorf("head of the log: %w", err)
	}
	return identity.Head, nil
}

// foldUntil folds and commits, a batch at a time.
func (b *build) foldUntil(ctx context.Context, until int64) error {
	opener, err := b.o.opener(b.reader)
	if err != nil {
		return err
	}
	head, err := b.head(ctx)
	if err != nil {
		return err
	}
	after := b.position
	f := b.folder(opener, b.writer, head)
	err = f.run(ctx, positions(logq.New(b.reader), &after, until))
	b.position, b.events = f.position, f.events
	if err == nil {
		err = f.requireReached(min(until, head))
	}
	return err
}

func (b *build) folder(opener *db.Opener, to sender, head int64) *folder {
	return &folder{
		opener: opener, project: b.o.Project, to: to, progress: b.o.Progress,
		began: time.Now(), head: head, position: b.position, events: b.events,
	}
}
