package audit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	buildPrefix = "view_build_" // under construction, or left by a killed process
	oldPrefix   = "view_old_"   // was live until a swap

	// lockWait is how long a schema change waits for one table before it steps back; readers that came later
	// queue behind it for so long.
	lockWait     = "2s"
	dropTries    = 10
	dropPause    = 500 * time.Millisecond
	dropPatience = time.Minute
)

func newBuildName() string {
	var b [6]byte
	rand.Read(b[:])
	return buildPrefix + hex.EncodeToString(b[:])
}

// lockKey is the advisory key that the process of a schema under construction holds.
func lockKey(schema string) int64 {
	sum := sha256.Sum256([]byte("cairn/build/" + schema))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// lockSchema takes the session lock on the name, on a connection that is not from a pool.
func lockSchema(ctx context.Context, conn *pgx.Conn, schema string) (held bool, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", lockKey(schema)).Scan(&held)
	return held, err
}

// dropAbandoned drops the schemas of rebuilds whose process is gone: nobody holds the lock on their name.
func dropAbandoned(ctx context.Context, conn *pgx.Conn) error {
	schemas, err := schemasLike(ctx, conn, buildPrefix)
	if err != nil {
		return err
	}
	for _, schema := range schemas {
		held, err := lockSchema(ctx, conn, schema)
		if err != nil {
			return err
		}
		if !held {
			continue // a rebuild under way
		}
		err = dropSchema(ctx, conn, schema)
		if _, uerr := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", lockKey(schema)); err == nil {
			err = uerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// DropOld drops the tables that swaps have put aside, and what killed rebuilds left. They hold plain text
// that no erasure reaches any more, so they must not stay for long. It answers the old schemas dropped.
func DropOld(ctx context.Context, url string) (dropped []string, err error) {
	conn, err := connect(ctx, url, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hangUp(conn)) }()
	if err := dropAbandoned(ctx, conn); err != nil {
		return nil, err
	}
	schemas, err := schemasLike(ctx, conn, oldPrefix)
	if err != nil {
		return nil, err
	}
	for _, schema := range schemas {
		if err := dropSchema(ctx, conn, schema); err != nil {
			return dropped, err
		}
		dropped = append(dropped, schema)
	}
	return dropped, nil
}

func schemasLike(ctx context.Context, conn *pgx.Conn, prefix string) ([]string, error) {
	rows, err := conn.Query(ctx, "SELECT nspname::text FROM pg_namespace WHERE starts_with(nspname::text, $1) ORDER BY nspname", prefix)
	if err != nil {
		return nil, fmt.Errorf("schemas %s*: %w", prefix, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// dropSchema waits for readers of the tables only shortly at a time.
func dropSchema(ctx context.Context, conn *pgx.Conn, schema string) error {
	for try := 1; ; try++ {
		err := dropOnce(ctx, conn, schema)
		if err == nil || !isLockTimeout(err) || try == dropTries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(dropPause):
		}
	}
}

func dropOnce(ctx context.Context, conn *pgx.Conn, schema string) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '"+lockWait+"'; SET LOCAL client_min_messages = warning"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE")
		return err
	})
	if err != nil {
		return fmt.Errorf("drop schema %s: %w", schema, err)
	}
	return nil
}

// isLockTimeout also holds for a deadlock, which is the same with less luck.
func isLockTimeout(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "55P03" || pg.Code == "40P01")
}
