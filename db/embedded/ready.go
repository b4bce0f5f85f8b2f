package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// errNotReady marks errors of a server that is starting, stopping or not there.
var errNotReady = errors.New("not ready")

// probe connects once. It fails with errNotReady while waiting makes sense.
func (c *Cluster) probe(ctx context.Context) error {
	if p, ok := readPidFile(c.data); ok && p.socket != "" {
		c.socket, c.port = p.socket, p.port
	} else if c.socket == "" {
		return fmt.Errorf("%w: no server has written its socket's place yet", errNotReady)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, c.URL("postgres", superuser))
	if err != nil {
		return c.refused(err)
	}
	defer conn.Close(ctx)
	const ask = "select current_setting('data_directory'), current_setting('fsync'), current_setting('server_version_num')"
	results, err := conn.Exec(ctx, ask).ReadAll()
	if err != nil {
		return fmt.Errorf("%w: %w", errNotReady, err)
	}
	row := results[0].Rows[0]
	return c.check(string(row[0]), string(row[1]), string(row[2]))
}

func (c *Cluster) refused(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "28") || strings.HasPrefix(pg.Code, "3D")) { // no such role or database: waiting is no help
		return fmt.Errorf("connecting to PostgreSQL in %s: %w", c.data, err)
	}
	return fmt.Errorf("%w: %w", errNotReady, err)
}

func (c *Cluster) check(data, fsync, version string) error {
	want, werr := os.Stat(c.data)
	got, gerr := os.Stat(data)
	if werr != nil || gerr != nil || !os.SameFile(want, got) {
		return fmt.Errorf("the server behind %s serves %s, not %s; fix: stop it", c.socket, data, c.data)
	}
	if c.options.Fsync && fsync != "on" {
		return &NotDurable{Dir: c.data}
	}
	n, err := strconv.Atoi(version)
	c.major = n / 10000
	return err
}
