package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cairn/db"
	"cairn/db/embedded"
)

// databaseName is the database inside the embedded cluster.
const databaseName = "cairn"

// installation is a data folder with its database, keys and blobs.
type installation struct {
	dir       string
	cluster   *embedded.Cluster // nil with a database of the operator's own
	ownerURL  string            // may migrate
	serverURL string
	workerURL string
	directURL string // empty: as the URL in use
	keys      *db.Keyring
	blobs     *db.BlobStore
}

// openInstallation starts or joins the embedded cluster of the data folder, or uses the database that was
// named, never one in place of the other. With create, missing keys are made.
func (g *globals) openInstallation(ctx context.Context, create bool) (*installation, error) {
	in := &installation{dir: g.data, directURL: g.directURL}
	if g.databaseURL != "" {
		in.ownerURL, in.serverURL, in.workerURL = g.databaseURL, g.databaseURL, g.databaseURL
		if err := checkURL(ctx, in.ownerURL); err != nil {
			return nil, interrupted(ctx, err)
		}
	} else {
		if err := g.requireInstallation(create); err != nil {
			return nil, err
		}
		if err := in.startCluster(ctx, g); err != nil {
			return nil, interrupted(ctx, err)
		}
	}
	if err := in.openSecrets(create); err != nil {
		in.close(g)
		return nil, err
	}
	return in, nil
}

// requireInstallation keeps commands that only read from making a new, empty installation by mistake.
func (g *globals) requireInstallation(create bool) error {
	if create {
		return nil
	}
	if _, err := os.Stat(filepath.Join(g.data, "postgres")); err != nil {
		return usage(fmt.Errorf("there is no installation in %s: name its folder with --data, or make one with 'cairn up'", g.data))
	}
	return nil
}

func (in *installation) startCluster(ctx context.Context, g *globals) error {
	began := time.Now()
	cluster, err := embedded.Open(ctx, embedded.Options{Dir: g.data, Fsync: true, Log: g.status()})
	if err != nil {
		return unavailable(err)
	}
	in.cluster, in.dir = cluster, cluster.Dir()
	if err := in.createDatabase(ctx); err != nil {
		in.close(g)
		return unavailable(err)
	}
	in.ownerURL = cluster.URL(databaseName, cluster.Superuser())
	in.serverURL, in.workerURL = cluster.URL(databaseName, "cairn_server"), cluster.URL(databaseName, "cairn_worker")
	g.say("PostgreSQL %d in %s is ready (%v)", cluster.Version(), in.dir, time.Since(began).Round(time.Millisecond))
	return nil
}

func (in *installation) createDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, in.cluster.URL("postgres", in.cluster.Superuser()))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", databaseName).Scan(&exists); err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+databaseName)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == "42P04" || pg.Code == "23505") {
		return nil // another process made it at the same moment
	}
	return err
}

func (in *installation) openSecrets(create bool) error {
	_, err := os.Stat(in.checkpointFile())
	create = create && err != nil // a log that is signed has its keys: a new one would pass for a forged log
	if in.keys, err = db.LoadKeyring(filepath.Join(in.dir, "keys"), create); err != nil {
		return usage(err)
	}
	if in.blobs, err = db.OpenBlobStore(filepath.Join(in.dir, "blob")); err != nil {
		return unavailable(err)
	}
	return nil
}

// migrate brings the schema up to this version and says what it did.
func (in *installation) migrate(ctx context.Context, g *globals) error {
	applied, err := db.Migrate(ctx, in.ownerURL)
	for _, m := range applied {
		g.say("migrated %s %d %s", m.Schema, m.Version, m.Name)
	}
	if i := slices.IndexFunc(applied, func(m db.Migration) bool { return m.Schema == "view" }); i >= 0 && applied[i].Version > 1 {
		g.say("the projections have changed: make them anew with 'cairn replay rebuild --swap --allow-differences'")
	}
	if err == nil {
		err = db.BindKey(ctx, in.ownerURL, in.keys)
	}
	if err != nil {
		return interrupted(ctx, asOwner(unavailable(err)))
	}
	return nil
}

// asOwner tells what to do about a database role that may not do what a command needs.
func asOwner(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" && exitCode(err) != exitUsage {
		return usage(fmt.Errorf("%w: connect as the role that owns the database", err))
	}
	return err
}

// open connects as one of the roles.
func (in *installation) open(ctx context.Context, url, name string, log *slog.Logger) (*db.DB, error) {
	return db.Open(ctx, db.Options{URL: url, DirectURL: in.directURL, Name: name, Keys: in.keys, Blobs: in.blobs, Log: log})
}

func (in *installation) checkpointFile() string { return filepath.Join(in.dir, "checkpoints.log") }

// close leaves the cluster; its last user stops it.
func (in *installation) close(g *globals) {
	if in.cluster == nil {
		return
	}
	if err := in.cluster.Close(); err != nil {
		g.say("PostgreSQL: %v", err)
	}
}

func checkURL(ctx context.Context, url string) error {
	if _, err := pgx.ParseConfig(url); err != nil {
		return usage(errors.New("the database URL cannot be read: want postgres://USER@HOST:PORT/DATABASE"))
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return unavailable(fmt.Errorf("the database that was named does not answer (none other is tried): %w", err))
	}
	return conn.Close(ctx)
}

// direct is the owner's address that leads through no pooler.
func (in *installation) direct() string {
	if in.directURL != "" {
		return in.directURL
	}
	return in.ownerURL
}
