package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/db"
)

// rowVersions rewrites every table that holds, or held, text or keys. The old files are unlinked by the
// checkpoint of a later step.
func (s *scrub) rowVersions(ctx context.Context) (string, error) {
	rows, err := s.conn.Query(ctx, `
		SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND (n.nspname = $1 OR c.oid IN ('log.command'::regclass, 'vault.subject_key'::regclass, 'vault.credential'::regclass))
		ORDER BY 1`, db.ViewSchema)
	if err != nil {
		return "", err
	}
	if s.tables, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return "", err
	}
	for _, table := range s.tables {
		if err := s.rewrite(ctx, table); err != nil {
			return "", fmt.Errorf("table %s: %w", table, err)
		}
	}
	return fmt.Sprintf("%d tables rewritten", len(s.tables)), nil
}

// rewrite gives way to whoever uses the table, for some time. A role that may not do it is only warned by the
// server, so the file tells whether it was done.
func (s *scrub) rewrite(ctx context.Context, table string) error {
	if _, err := s.conn.Exec(ctx, "SET lock_timeout = '"+lockWait+"'"); err != nil {
		return err
	}
	before, err := s.file(ctx, table)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		_, err := s.conn.Exec(ctx, "VACUUM (FULL, ANALYZE) "+table)
		if err == nil {
			break
		}
		if !isLockTimeout(err) || try == dropTries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(dropPause):
		}
	}
	after, err := s.file(ctx, table)
	if err == nil && after == before {
		return &unfinished{why: "the role may not rewrite " + table, fix: asSuperuser}
	}
	return err
}

func (s *scrub) file(ctx context.Context, table string) (path string, err error) {
	err = s.conn.QueryRow(ctx, "SELECT pg_relation_filenode($1::text::regclass)::text", table).Scan(&path)
	return path, err
}

// statistics holds samples of column values. ANALYZE has replaced them, but not those of tables that are empty
// now, and the replaced rows are still in the catalog's file.
func (s *scrub) statistics(ctx context.Context) (string, error) {
	if len(s.tables) == 0 {
		return "", &unfinished{why: "the tables were not rewritten", fix: "see row versions"}
	}
	if _, err := s.conn.Exec(ctx, "DELETE FROM pg_catalog.pg_statistic WHERE starelid = ANY($1::text[]::regclass[])", s.tables); err != nil {
		return "", err
	}
	for _, table := range s.tables {
		if _, err := s.conn.Exec(ctx, "ANALYZE "+table); err != nil {
			return "", err
		}
	}
	if err := s.rewrite(ctx, "pg_catalog.pg_statistic"); err != nil {
		return "", err
	}
	return "gathered anew, catalog rewritten", nil
}

// statements clears the extension that keeps the texts of statements, where it is installed.
func (s *scrub) statements(ctx context.Context) (string, error) {
	var schema string
	err := s.conn.QueryRow(ctx, "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements'").Scan(&schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return "pg_stat_statements is not installed", nil
	}
	if err == nil {
		_, err = s.conn.Exec(ctx, "SELECT "+pgx.Identifier{schema, "pg_stat_statements_reset"}.Sanitize()+"()")
	}
	return "reset", err
}

// wal makes the server unlink the segments that were written so far.
func (s *scrub) wal(ctx context.Context) (string, error) {
	for _, sql := range []string{"CHECKPOINT", "SELECT pg_switch_wal()", "CHECKPOINT"} {
		if _, err := s.conn.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	var older, recycled int
	var archive string
	var standbys int
	err := s.conn.QueryRow(ctx, `
		WITH w AS (SELECT name, pg_walfile_name(pg_current_wal_lsn()) AS current FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$')
		SELECT count(*) FILTER (WHERE name < current), count(*) FILTER (WHERE name > current),
		       current_setting('archive_mode'), (SELECT count(*) FROM pg_stat_replication)
		FROM w`).Scan(&older, &recycled, &archive, &standbys)
	switch {
	case err != nil:
		return "", err
	case older > 0:
		return "", &unfinished{
			why: fmt.Sprintf("%d old segments are kept for a replication slot, wal_keep_size or the archiver", older),
			fix: "let the slot's reader or the archiver catch up, or drop the slot, and run it again",
		}
	case recycled > 0:
		return "", &unfinished{
			why: fmt.Sprintf("%d segments were kept for reuse and hold old bytes", recycled),
			fix: "ALTER SYSTEM SET wal_recycle = off, reload, and run it again until they are used up",
		}
	case archive != "off":
		return "", &unfinished{why: "archive_mode is " + archive + ": archived segments hold what was written", fix: "delete the archived segments up to now together with the base backups that need them"}
	case standbys > 0:
		return "", &unfinished{why: fmt.Sprintf("%d standbys received what was written", standbys), fix: "CHECKPOINT on each of them once it has replayed, and look into its pg_wal"}
	}
	return "old segments removed", nil
}

// serverLog cannot be cleaned from here. What matters is whether the server writes people's text into it.
func (s *scrub) serverLog(ctx context.Context) (string, error) {
	rows, err := s.conn.Query(ctx, `
		SELECT name || ' = ' || setting FROM pg_settings
		WHERE (name = 'log_statement' AND setting <> 'none')
		   OR (name IN ('log_min_duration_statement', 'log_min_duration_sample', 'log_parameter_max_length_on_error') AND setting NOT IN ('-1', '0'))
		   OR (name = 'log_min_duration_statement' AND setting = '0')
		   OR (name = 'log_transaction_sample_rate' AND setting <> '0')
		   OR (name = 'log_error_verbosity' AND setting <> 'terse')
		   OR (name = 'auto_explain.log_min_duration' AND setting <> '-1')
		ORDER BY 1`)
	if err != nil {
		return "", err
	}
	talkative, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	if len(talkative) > 0 {
		return "", &unfinished{
			why: "the server may write values into its log: " + strings.Join(talkative, ", "),
			fix: "turn that off (log_error_verbosity = terse), and delete the log files written before",
		}
	}
	return "the server writes no values into it", nil
}
