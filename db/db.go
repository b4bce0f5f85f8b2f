// Package db is the only room that knows PostgreSQL: the log, its positions, the vault, the queue and the
// projections.
//
// One path for every write: Execute takes a command, decides it on folded states, and appends what was
// decided in one flush together with the projections' rows, the idempotency answer and the queue's jobs.
//
//	Execute -> mailbox -> states -> Decide -> flush -> commit -> ring the sequencer
//	                        ^                   |
//	                        +---- conflict -----+
//
// After commit, the sequencer of any process gives the events their positions and rings the bell; tails read
// on from the position that they have. Nothing is decided from a projection.
//
// It may import domain, pgx, River (inserting only), goose and the standard library.
package db

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"cairn/db/internal/logq"
	"cairn/db/internal/projectq"
	"cairn/db/projection"
	"cairn/domain/catalog"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// ViewSchema is the schema of the live projections.
const ViewSchema = "view"

// Options say how to reach the database and what is kept outside it.
type Options struct {
	URL       string // through a transaction pooler it needs default_query_exec_mode=exec
	DirectURL string // for LISTEN and sequencing; empty: URL
	Name      string // application_name, for operators
	Keys      *Keyring
	Blobs     *BlobStore
	Registry  *event.Registry // nil: the catalog
	Project   Projector       // nil: projection.Apply
	MaxConns  int32           // 0: 16
	Log       *slog.Logger    // nil: slog.Default()

	// Sequenced, when not nil, is told of every call that gave positions. It runs between two of them.
	Sequenced func(events int, took time.Duration)
	// NoPositions leaves all positions to other processes. Only for measuring what they cost.
	NoPositions bool
}

// Projector writes the rows of one event; it must be projection.Apply but in tests.
type Projector func(ctx context.Context, q *projectq.Queries, r *event.Record, e event.Event) error

// DB is one process's access to the log.
type DB struct {
	pool      *pgxpool.Pool
	log       *logq.Queries
	registry  *event.Registry
	project   Projector
	keys      *Keyring
	sealer    *sealer
	states    *states
	mailboxes *mailboxes
	locking   chan struct{} // bounds how many connections are kept to hold a stream's lock
	appending chan struct{} // bounds how many others append, and perhaps wait for such a lock
	sequencer *sequencer
	bell      *bell
	river     *river.Client[pgx.Tx]
	slog      *slog.Logger
	stats     *counters

	stop        context.CancelFunc
	background  sync.WaitGroup
	noPositions bool
}

// Open connects, checks that the deployment key belongs to this database, and starts the sequencer and the
// bell of this process. Close ends them.
func Open(ctx context.Context, o Options) (*DB, error) {
	o = o.withDefaults()
	pool, err := openPool(ctx, o)
	if err != nil {
		return nil, err
	}
	direct, err := directConfig(o)
	if err != nil {
		pool.Close()
		return nil, err
	}
	stats := &counters{}
	d := &DB{
		pool: pool, stats: stats, log: logq.New(pool), registry: o.Registry, project: o.Project, keys: o.Keys,
		states: newStates(4096, 64<<20), mailboxes: newMailboxes(), locking: make(chan struct{}, lockers(o)), appending: make(chan struct{}, int(o.MaxConns)-2*lockers(o)),
		sequencer: newSequencer(direct, o.Log, stats.placed(o.Sequenced)), bell: newBell(o.DirectURL, o.Log), slog: o.Log,
	}
	if err := d.prepare(ctx, o); err != nil {
		pool.Close()
		return nil, err
	}
	background, stop := context.WithCancel(context.Background())
	d.stop = stop
	if !o.NoPositions {
		d.background.Go(func() { d.sequencer.run(background) })
	}
	d.noPositions = o.NoPositions
	d.background.Go(func() { d.bell.run(background) })
	d.background.Go(func() { d.watchErasures(background) })
	return d, nil
}

func (o Options) withDefaults() Options {
	if o.DirectURL == "" {
		o.DirectURL = o.URL
	}
	if o.Registry == nil {
		o.Registry = catalog.Registry()
	}
	if o.Project == nil {
		o.Project = projection.Apply
	}
	if o.MaxConns == 0 { // see minConns
		o.MaxConns = 16
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// minConns is the smallest pool: one connection that holds a stream's lock, one that appends under it, and
// two for everybody else, who may be waiting for that lock.
const minConns = 4

// lockers is how many streams may be locked at once. Each takes a connection and needs a second one to
// append with; appending leaves these free, or the ones that wait for a lock could keep its holder from ending.
func lockers(o Options) int { return max(1, int(o.MaxConns)/8) }

func openPool(ctx context.Context, o Options) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	if o.MaxConns < minConns {
		return nil, fmt.Errorf("database pool of %d connections: give it at least %d", o.MaxConns, minConns)
	}
	config.MaxConns = o.MaxConns
	config.MinIdleConns = 2
	setSession(config.ConnConfig, o.Name, ViewSchema)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return pool, nil
}

// directConfig is for the connections that a process keeps for itself.
func directConfig(o Options) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(o.DirectURL)
	if err != nil {
		return nil, fmt.Errorf("direct database URL: %w", err)
	}
	setSession(config, o.Name, ViewSchema)
	return config, nil
}

// setSession fixes what every session of a process has. The path is set once, when the connection is made:
// a pool belongs to one schema of projections.
func setSession(config *pgx.ConnConfig, name, schema string) {
	config.RuntimeParams["application_name"] = name
	config.RuntimeParams["search_path"] = schema + ",log,public"
	config.RuntimeParams["timezone"] = "UTC"
	// A frozen client must not hold a stream's head: what it left open ends by itself.
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "1000"
	config.RuntimeParams["statement_timeout"] = "30000"
	// Every statement of a process finds its rows by an index. On young tables without statistics the planner
	// does not know that, and keeps a plan that reads the whole log for each batch (measured: 39 ms for 0.1).
	for _, plan := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"} {
		config.RuntimeParams[plan] = "off"
	}
	// So a plan for any values is the right one for all. Otherwise statements over arrays are planned at each
	// call, since the planner believes that it gains from knowing their lengths.
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	config.ConnectTimeout = 10 * time.Second
}

func (d *DB) prepare(ctx context.Context, o Options) error {
	if err := d.pool.Ping(ctx); err != nil {
		return fault.New(fault.Unavailable, "database_unavailable", "cannot reach the database: %v", err)
	}
	if err := d.requireSchema(ctx); err != nil {
		return err
	}
	if err := d.checkKey(ctx); err != nil {
		return err
	}
	var err error
	if d.sealer, err = newSealer(o.Keys, d.log, o.Blobs); err != nil {
		return err
	}
	d.river, err = river.NewClient(riverpgxv5.New(d.pool), &river.Config{FetchCooldown: FetchCooldown, Logger: o.Log})
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	return nil
}

// checkKey refuses a deployment key that the database was not made with. The first server sets the value.
func (d *DB) checkKey(ctx context.Context) error {
	want := d.keys.check()
	got, err := d.log.DeploymentCheck(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		if err := d.log.DeploymentCheckSet(ctx, want); err != nil {
			return fmt.Errorf("deployment key: the server must be started once before a worker: %w", err)
		}
		got, err = d.log.DeploymentCheck(ctx)
	}
	if err != nil {
		return fmt.Errorf("deployment key: %w", err)
	}
	if !hmac.Equal(got, want) {
		return fault.New(fault.Unavailable, "wrong_deployment_key",
			"the deployment key is not the one that this database was made with: restore it from the backup, or set %s", EnvDeploymentKey)
	}
	return nil
}

// Close waits for the appends under way, gives their events positions, and disconnects.
func (d *DB) Close() {
	d.mailboxes.busy.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	d.stop()
	d.background.Wait()
	if !d.noPositions {
		if err := d.sequencer.sequence(ctx); err != nil {
			d.slog.Debug("positions are left to other processes", "error", err)
		}
		d.sequencer.disconnect()
	}
	d.pool.Close()
}

// Pool is the process's connection pool, for River's working client.
func (d *DB) Pool() *pgxpool.Pool { return d.pool }

// Keys is the deployment's keyring.
func (d *DB) Keys() *Keyring { return d.keys }

// Registry is the catalog that this process knows.
func (d *DB) Registry() *event.Registry { return d.registry }

// ListenAlive reports whether notifications arrive. When they do not, readers poll and are merely slower.
func (d *DB) ListenAlive() bool { return d.bell.alive() }

// UnsequencedAge is how long the oldest committed event has waited for its position; nil when none waits.
func (d *DB) UnsequencedAge(ctx context.Context) (*time.Duration, error) {
	seconds, err := d.log.UnsequencedAge(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("unsequenced age: %w", err)
	}
	age := time.Duration(seconds * float64(time.Second))
	return &age, nil
}

// forget drops what this process remembers of a subject whose key was destroyed.
func (d *DB) forget(subject event.ID) {
	d.sealer.forget(subject)
	d.states.clear()
}
