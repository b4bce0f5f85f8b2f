package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/internal/logq"
	"cairn/db/projection"
	"cairn/domain/catalog"
	"cairn/domain/event"
)

// ReplayOptions say which log is folded again, and how.
type ReplayOptions struct {
	URL      string // direct, never through a transaction pooler, as the role that owns the schema
	Keys     *db.Keyring
	Blobs    *db.BlobStore
	Registry *event.Registry      // nil: the catalog
	Project  db.Projector         // nil: projection.Apply
	Orders   []Order              // of VerifyReplay; nil: both
	Scratch  string               // of VerifyReplay: an empty schema that db.MigrateView made, left empty; "": make one
	Progress func(ReplayProgress) // nil: none; called after every batch, from another goroutine
}

// ReplayProgress is how far a fold has come.
type ReplayProgress struct {
	Position int64   `json:"position"` // the last one folded
	Head     int64   `json:"head"`     // the last one of the log when the fold began
	Events   int64   `json:"events"`   // folded so far
	Rate     float64 `json:"rate"`     // events a second since the fold began
}

// Order is the order in which a verification folds the log. Each keeps the order inside every stream, so
// all of them must give the same rows.
type Order string

const (
	// ByPosition is the order of the log: positions, then what waits for one.
	ByPosition Order = "position"
	// ByStream takes whole streams, the newest ids first. It shows rows that depend on the order in which
	// streams arrived.
	ByStream Order = "stream"
)

// ReplayReport is what a verification looked at.
type ReplayReport struct {
	Position    int64        `json:"position"`    // the last one folded
	Events      int64        `json:"events"`      // folded, with those that wait for a position
	Tables      []TableCount `json:"tables"`      // rows compared
	Differences []*Different `json:"differences"` // the first ones of each table; empty when the rows are equal
	DurationUS  int64        `json:"duration_us"`
}

// TableCount is the number of rows of one live table.
type TableCount struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// VerifyReplay folds the whole log beside the live projections and compares every row in one snapshot, once for
// each order: writers go on meanwhile and are not waited for. It answers the first *Different as the error; the
// report has more. Nothing stays behind.
//
// A long log is folded up to its head first, a batch in a transaction, and the snapshot is taken then, for what
// was appended since and for the comparison. Inside one transaction a row that is written often would have all
// its versions at once, and each write would pass by all of them.
func VerifyReplay(ctx context.Context, o ReplayOptions) (report ReplayReport, err error) {
	began := time.Now()
	b, err := startBuild(ctx, o, o.Scratch)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, b.drop()) }()
	for _, order := range b.o.Orders {
		if err = b.foldAhead(ctx, order); err == nil {
			err = b.compareLive(ctx, order, &report)
		}
		err = errors.Join(err, b.empty())
		if err != nil {
			break
		}
	}
	report.DurationUS = time.Since(began).Microseconds()
	return report, err
}

// foldAhead folds and commits up to the head, when that is more than the snapshot's transaction should do.
func (b *build) foldAhead(ctx context.Context, order Order) error {
	head, err := b.head(ctx)
	if err != nil || head <= foldBatch {
		return err
	}
	if order == ByPosition {
		return b.foldUntil(ctx, head)
	}
	opener, err := b.o.opener(b.reader)
	if err != nil {
		return err
	}
	f := b.folder(opener, b.writer, head)
	b.position = head // of what is in the tables from now on, whatever comes of it
	if err := f.run(ctx, byStreamUpTo(logq.New(b.reader), head)); err != nil {
		return err
	}
	if b.events = f.events; b.events != head {
		return fmt.Errorf("%d events have positions up to %d: run 'cairn log verify'", b.events, head)
	}
	return nil
}

// empty takes back what foldAhead committed, also when the caller's context has ended.
func (b *build) empty() error {
	if b.position == 0 {
		return nil
	}
	b.position, b.events = 0, 0
	if b.writer.IsClosed() && !b.borrowed {
		return nil // the schema is dropped as a whole
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropPatience)
	defer cancel()
	conn, err := connect(ctx, b.o.URL, b.schema)
	if err != nil {
		return err
	}
	tables, err := tablesOf(ctx, conn, b.schema)
	for name := range tables {
		_, terr := conn.Exec(ctx, "TRUNCATE "+pgx.Identifier{b.schema, name}.Sanitize())
		err = errors.Join(err, terr)
	}
	return errors.Join(err, hangUp(conn))
}

func (o ReplayOptions) withDefaults() ReplayOptions {
	if o.Registry == nil {
		o.Registry = catalog.Registry()
	}
	if o.Project == nil {
		o.Project = projection.Apply
	}
	if o.Orders == nil {
		o.Orders = []Order{ByPosition, ByStream}
	}
	return o
}

// connect opens a connection of its own whose unqualified names mean the schema; empty: the live one.
func connect(ctx context.Context, url, schema string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	if schema == "" {
		schema = db.ViewSchema
	}
	config.RuntimeParams["application_name"] = "cairn replay"
	config.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize() + ",log,public"
	config.RuntimeParams["timezone"] = "UTC"
	config.ConnectTimeout = 10 * time.Second
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return conn, nil
}

// hangUp closes connections also when the caller's context has ended.
func hangUp(conns ...*pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var err error
	for _, conn := range conns {
		if conn != nil {
			err = errors.Join(err, conn.Close(ctx))
		}
	}
	return err
}

// snapshot begins a transaction on both connections that see exactly the same, and answers how to end both.
// The reader only reads; what the writer writes it sees itself, and loses again.
func snapshot(ctx context.Context, reader, writer *pgx.Conn) (read, write pgx.Tx, end func() error, err error) {
	read, err = reader.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, nil, nil, err
	}
	var name string
	if err := read.QueryRow(ctx, "SELECT pg_export_snapshot()").Scan(&name); err != nil {
		return nil, nil, nil, errors.Join(err, read.Rollback(context.WithoutCancel(ctx)))
	}
	write, err = writer.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err == nil {
		_, err = write.Exec(ctx, "SET TRANSACTION SNAPSHOT '"+name+"'")
	}
	end = func() error {
		ctx := context.WithoutCancel(ctx)
		err := read.Rollback(ctx)
		if write != nil {
			err = errors.Join(err, write.Rollback(ctx))
		}
		if errors.Is(err, pgx.ErrTxClosed) {
			return nil
		}
		return err
	}
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("snapshot: %w", err), end())
	}
	return read, write, end, nil
}

func (o ReplayOptions) opener(conn logq.DBTX) (*db.Opener, error) {
	return db.NewOpener(o.Keys, o.Blobs, o.Registry, logq.New(conn))
}
