package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cairn/domain/catalog"
)

// ScrubStep is one place in which a database keeps text beside its rows.
type ScrubStep struct {
	Name   string `json:"name"`
	Done   bool   `json:"done"`
	Detail string `json:"detail"` // what was done, or why it was not
	Fix    string `json:"fix"`    // how to do it by hand; empty when done
}

// ScrubReport says for each place whether it is clean.
type ScrubReport struct {
	Steps      []ScrubStep `json:"steps"`
	DurationUS int64       `json:"duration_us"`
}

// Clean reports whether every step was done.
func (r ScrubReport) Clean() bool {
	for _, step := range r.Steps {
		if !step.Done {
			return false
		}
	}
	return true
}

// scrubPatience is how long transactions that are older than the scrub are waited for.
const scrubPatience = 30 * time.Second

const asSuperuser = "run it again as a superuser of the server"

// unfinished is a step that could not be done for a reason that the operator can remove.
type unfinished struct{ why, fix string }

func (u *unfinished) Error() string { return u.why }

// Scrub removes what PostgreSQL still keeps of rows that an erasure has cleared: row versions, planner
// statistics, write-ahead log, and tables put aside. The erasure is complete without it for everyone who
// reads through Cairn or SQL; the scrub is for the bytes in the server's files. The wrapped key goes the same
// way as the text: as long as its old row version exists, the holder of the deployment key could use it.
//
// Tables are rewritten one after the other, and locked while that lasts. The role must own them; most of the
// other steps need a superuser. What may not be done here is reported with the way to do it, and is no error.
func Scrub(ctx context.Context, url string) (report ScrubReport, err error) {
	began := time.Now()
	conn, err := connect(ctx, url, "")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, hangUp(conn)) }()
	s := &scrub{conn: conn, url: url}
	for _, step := range []struct {
		name string
		fn   func(context.Context) (string, error)
	}{
		{"keys of erased subjects", s.keys},
		{"schemas put aside", s.oldSchemas},
		{"old transactions", s.oldTransactions},
		{"row versions", s.rowVersions},
		{"planner statistics", s.statistics},
		{"statement statistics", s.statements},
		{"write-ahead log", s.wal},
		{"server log", s.serverLog},
	} {
		detail, err := step.fn(ctx)
		done := ScrubStep{Name: step.name, Done: err == nil, Detail: detail}
		if err != nil {
			open, ok := asUnfinished(err)
			if !ok {
				return report, fmt.Errorf("scrub, %s: %w", step.name, err)
			}
			done.Detail, done.Fix = open.why, open.fix
		}
		report.Steps = append(report.Steps, done)
	}
	report.DurationUS = time.Since(began).Microseconds()
	return report, nil
}

// asUnfinished also takes what the role may not do, and locks that others did not let go.
func asUnfinished(err error) (*unfinished, bool) {
	if u, ok := errors.AsType[*unfinished](err); ok {
		return u, true
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && pg.Code == "42501":
		return &unfinished{why: err.Error(), fix: asSuperuser}, true
	case ok && isLockTimeout(err):
		return &unfinished{why: err.Error(), fix: "end the session that uses the table, and run it again"}, true
	}
	return nil, false
}

type scrub struct {
	conn   *pgx.Conn
	url    string
	tables []string // rewritten, quoted
}

func (s *scrub) keys(ctx context.Context) (string, error) {
	n, err := EnforceErasures(ctx, s.url, catalog.Registry())
	return fmt.Sprintf("%d came back with a restored vault and were destroyed", n), err
}

func (s *scrub) oldSchemas(ctx context.Context) (string, error) {
	dropped, err := DropOld(ctx, s.url)
	if err != nil {
		return "", err
	}
	building, err := schemasLike(ctx, s.conn, buildPrefix)
	if err != nil {
		return "", err
	}
	if len(building) > 0 {
		return "", &unfinished{why: fmt.Sprintf("rebuilds are under way in %v", building), fix: "wait until they have ended, and run it again"}
	}
	return fmt.Sprintf("%d dropped", len(dropped)), nil
}

// oldTransactions waits: a rewrite keeps every row version that an older transaction may still see.
func (s *scrub) oldTransactions(ctx context.Context) (string, error) {
	var now string
	var sees bool
	if err := s.conn.QueryRow(ctx, "SELECT pg_current_xact_id()::xid::text, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')").Scan(&now, &sees); err != nil {
		return "", err
	}
	if !sees {
		return "", &unfinished{why: "the role does not see the transactions of others", fix: asSuperuser}
	}
	deadline := time.Now().Add(scrubPatience)
	for {
		rows, err := s.conn.Query(ctx, `
			SELECT 'session ' || pid || ' (' || application_name || ')' FROM pg_stat_activity
			WHERE pid <> pg_backend_pid() AND greatest(age(backend_xmin), age(backend_xid)) > age($1::text::xid)
			UNION ALL SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts WHERE age(transaction) > age($1::text::xid)
			UNION ALL SELECT 'replication slot ' || slot_name FROM pg_replication_slots WHERE age(xmin) > age($1::text::xid)`, now)
		if err != nil {
			return "", err
		}
		holders, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return "", err
		}
		if len(holders) == 0 {
			return "none is left", nil
		}
		if time.Now().After(deadline) {
			return "", &unfinished{why: fmt.Sprintf("%v keep old row versions visible", holders), fix: "end them, and run it again"}
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
