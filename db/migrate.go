package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"

	"cairn/db/internal/logq"
	"cairn/domain/fault"
	"cairn/migrations"
)

// Migrations run one at a time over all processes (a session lock), each in its own transaction, and give up
// on a table lock after lockTimeout so that they never block writers for long; then they are tried again.
// Variables for tests only.
var (
	lockTimeout = 5 * time.Second
	lockPause   = 2 * time.Second
	lockTries   = 12
	sources     = map[string]fs.FS{"log": migrations.Log, "view": migrations.View}
)

// riverVersion is the migration of River's schema that this version of Cairn uses.
const riverVersion = 8

// riverStep is the place of River's schema among the migrations of the log.
const riverStep = 3

// Migration is one step of the schema.
type Migration struct {
	Schema  string // "log" or "view"
	Version int64
	Name    string
	Applied *time.Time // nil: pending
}

// Migrate brings the database at a direct URL, as a role that owns the schema, up to this version. It is
// safe to run twice and from several processes at once. It answers what it applied.
func Migrate(ctx context.Context, url string) ([]Migration, error) {
	var applied []Migration
	for _, part := range []string{"log", "view"} {
		done, err := migratePart(ctx, url, part, ViewSchema)
		if err != nil {
			return applied, fmt.Errorf("migrate %s: %w", part, err)
		}
		applied = append(applied, done...)
	}
	return applied, nil
}

// BindKey ties a migrated database to its deployment key, so that a worker may be the first to open it. A
// database that is tied to another key stays so: opening it refuses.
func BindKey(ctx context.Context, url string, keys *Keyring) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("bind the deployment key: %w", err)
	}
	defer conn.Close(ctx)
	if err := logq.New(conn).DeploymentCheckSet(ctx, keys.check()); err != nil {
		return fmt.Errorf("bind the deployment key: %w", err)
	}
	return nil
}

// MigrateView makes the projections' tables in a schema of its own, for a rebuild beside the live ones.
func MigrateView(ctx context.Context, url, schema string) error {
	_, err := migratePart(ctx, url, "view", schema)
	return err
}

// MigrationStatus lists every step and whether it was applied.
func MigrationStatus(ctx context.Context, url string) ([]Migration, error) {
	var all []Migration
	for _, part := range []string{"log", "view"} {
		db, provider, err := migrator(url, part, ViewSchema)
		if err != nil {
			return nil, err
		}
		steps, err := provider.Status(ctx)
		db.Close()
		if err != nil {
			return nil, fmt.Errorf("migrate %s: %w", part, err)
		}
		for _, step := range steps {
			m := Migration{Schema: part, Version: step.Source.Version, Name: name(step.Source)}
			if step.State == goose.StateApplied {
				m.Applied = &step.AppliedAt
			}
			all = append(all, m)
		}
	}
	return all, nil
}

func migratePart(ctx context.Context, url, part, schema string) ([]Migration, error) {
	db, provider, err := migrator(url, part, schema)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if part == "view" {
		if err := makeViewSchema(ctx, db, schema); err != nil {
			return nil, err
		}
	}
	if err := refuseFuture(ctx, provider, part); err != nil {
		return nil, err
	}
	var applied []Migration
	for try := 1; ; try++ {
		results, err := provider.Up(ctx)
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			results = partial.Applied
		}
		for _, r := range results {
			applied = append(applied, Migration{Schema: part, Version: r.Source.Version, Name: name(r.Source)})
		}
		if err == nil {
			break
		}
		if !lockTimedOut(err) || try == lockTries {
			return applied, err
		}
		select {
		case <-ctx.Done():
			return applied, ctx.Err()
		case <-time.After(lockPause):
		}
	}
	if part == "view" {
		return applied, grantView(ctx, db, schema)
	}
	return applied, nil
}

// refuseFuture keeps an older Cairn from calling a database migrated that a later one has moved on.
func refuseFuture(ctx context.Context, provider *goose.Provider, part string) error {
	got, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("schema version: %w", err)
	}
	if want := newest(part); got > want {
		return fault.New(fault.Unavailable, "schema_version", "the database is at version %d of %s, this version of Cairn knows up to %d: use the version of Cairn that the database belongs to, or a later one", got, part, want)
	}
	return nil
}

func migrator(url, part, schema string) (*sql.DB, *goose.Provider, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, nil, fmt.Errorf("database URL: %w", err)
	}
	config.RuntimeParams["application_name"] = "cairn migrate"
	config.RuntimeParams["search_path"] = "public"
	config.RuntimeParams["lock_timeout"] = strconv.FormatInt(lockTimeout.Milliseconds(), 10)
	config.ConnectTimeout = 10 * time.Second
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, nil, err
	}
	options := []goose.ProviderOption{goose.WithSessionLocker(locker), goose.WithTableName("cairn_" + part + "_version")}
	files, err := fs.Sub(sources[part], part)
	if part == "view" {
		config.RuntimeParams["search_path"] = schema
	} else {
		options = append(options, goose.WithGoMigrations(goose.NewGoMigration(riverStep, &goose.GoFunc{RunDB: riverUp}, nil)))
	}
	if err != nil {
		return nil, nil, err
	}
	db := stdlib.OpenDB(*config)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, options...)
	if err != nil {
		db.Close()
		return nil, nil, err
	}
	return db, provider, nil
}

// riverUp runs River's own migrations. It picks up where an interrupted one stopped.
func riverUp(ctx context.Context, db *sql.DB) error {
	migrate, err := rivermigrate.New(riverdatabasesql.New(db), nil)
	if err != nil {
		return err
	}
	_, err = migrate.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: riverVersion})
	return err
}

func makeViewSchema(ctx context.Context, db *sql.DB, schema string) error {
	_, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize())
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == "23505" || pg.Code == "42P06") {
		return nil // another process made it at the same moment
	}
	return err
}

func grantView(ctx context.Context, db *sql.DB, schema string) error {
	quoted := pgx.Identifier{schema}.Sanitize()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, statement := range []string{
		"SELECT pg_advisory_xact_lock(7236838231894510695)", // concurrent grants on one catalog row fail
		"GRANT USAGE ON SCHEMA " + quoted + " TO cairn_server, cairn_worker",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + quoted + " TO cairn_server, cairn_worker",
		"REVOKE INSERT, UPDATE, DELETE ON " + quoted + ".cairn_view_version FROM cairn_server, cairn_worker",
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func lockTimedOut(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "55P03"
}

func name(source *goose.Source) string {
	if source.Path == "" {
		return "river"
	}
	return source.Path
}

// requireSchema refuses a database that was not migrated, or by another version.
func (d *DB) requireSchema(ctx context.Context) error {
	for part, want := range map[string]int64{"public.cairn_log_version": newest("log"), ViewSchema + ".cairn_view_version": newest("view")} {
		var got int64
		err := d.pool.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+part+" WHERE is_applied").Scan(&got)
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == "42P01" || pg.Code == "3F000") {
			err, got = nil, 0
		}
		if err != nil {
			return fmt.Errorf("schema version: %w", err)
		}
		if got != want {
			return fault.New(fault.Unavailable, "schema_version",
				"the database is at version %d of %s, this version of Cairn needs %d: run 'cairn migrate up' of this version, or the version of Cairn that the database belongs to", got, part, want)
		}
	}
	return nil
}

// newest is the highest version among the embedded files and the steps in Go.
func newest(part string) int64 {
	entries, err := fs.ReadDir(sources[part], part)
	if err != nil {
		panic(fmt.Sprintf("embedded migrations of %s: %v", part, err)) // they are part of the binary
	}
	var highest int64
	if part == "log" {
		highest = riverStep
	}
	for _, entry := range entries {
		if v, err := goose.NumericComponent(entry.Name()); err == nil {
			highest = max(highest, v)
		}
	}
	return highest
}
