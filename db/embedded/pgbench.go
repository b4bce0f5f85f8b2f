package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrNoPGBench says that there is no pgbench beside the server.
var ErrNoPGBench = errors.New("no pgbench here")

// PGBench runs a script with the cluster's pgbench, as the superuser in a database, and answers transactions
// per second. Statements are prepared. Errors: ErrNoPGBench when the binaries lack it (the npm
// package has none), and what pgbench says.
func (c *Cluster) PGBench(ctx context.Context, db, script string, clients int, length time.Duration) (float64, error) {
	bin := c.options.Binaries
	if bin.Dir == "" {
		var err error
		if bin, err = Find(ctx, FindOptions{Major: c.major, account: &c.account}); err != nil {
			return 0, err
		}
	}
	if !executable(bin.path("pgbench")) {
		return 0, fmt.Errorf("%s: %w", bin.Dir, ErrNoPGBench)
	}
	cmd := c.account.command(c.dir, bin.path("pgbench"), "-h", c.socket, "-p", strconv.Itoa(c.port), "-U", superuser, "-n", "-M", "prepared",
		"-c", strconv.Itoa(clients), "-j", strconv.Itoa(min(clients, 2)), "-T", strconv.Itoa(max(1, int(length.Round(time.Second)/time.Second))), "-f", "-", db)
	cmd.Stdin = strings.NewReader(script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("pgbench: %w: %s", err, strings.TrimSpace(out.String()))
	}
	_, after, ok := strings.Cut(out.String(), "tps = ")
	tps, err := strconv.ParseFloat(strings.Fields(after + " ?")[0], 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("pgbench said no rate: %s", strings.TrimSpace(out.String()))
	}
	return tps, nil
}
