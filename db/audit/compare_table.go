package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"cairn/db/internal/logq"
)

// table is what the catalog says of one table of projections.
type table struct {
	name    string
	key     []string // columns of the primary key
	types   []string // of the key's columns
	columns []string
}

// tablesOf reads a schema's tables, but for the one in which the migrations keep their version.
func tablesOf(ctx context.Context, conn logq.DBTX, schema string) (map[string]table, error) {
	rows, err := conn.Query(ctx, `
		SELECT c.relname::text,
		       coalesce((SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey)
		                 WHERE i.indrelid = c.oid AND i.indisprimary), '{}'),
		       coalesce((SELECT array_agg(format_type(a.atttypid, a.atttypmod) ORDER BY a.attname) FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey)
		                 WHERE i.indrelid = c.oid AND i.indisprimary), '{}'),
		       coalesce((SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_attribute a
		                 WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '{}')
		FROM pg_class c WHERE c.relnamespace = to_regnamespace($1)::oid AND c.relkind IN ('r', 'p') AND c.relname <> 'cairn_view_version'`,
		pgx.Identifier{schema}.Sanitize())
	if err != nil {
		return nil, fmt.Errorf("tables of %s: %w", schema, err)
	}
	tables := map[string]table{}
	var t table
	_, err = pgx.ForEachRow(rows, []any{&t.name, &t.key, &t.types, &t.columns}, func() error {
		tables[t.name] = table{name: t.name, key: slices.Clone(t.key), types: slices.Clone(t.types), columns: slices.Clone(t.columns)}
		return nil
	})
	return tables, err
}

// pair is a table that both sides have.
type pair struct{ live, rebuilt table }

// compareSchemas compares every table of two schemas as its transaction sees them.
func compareSchemas(ctx context.Context, tx pgx.Tx, live, rebuilt string) (differences []*Different, counts []TableCount, err error) {
	ours, err := tablesOf(ctx, tx, live)
	if err != nil {
		return nil, nil, err
	}
	theirs, err := tablesOf(ctx, tx, rebuilt)
	if err != nil {
		return nil, nil, err
	}
	names := maps.Clone(ours)
	maps.Copy(names, theirs)
	pairs := map[string]pair{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		l, isLive := ours[name]
		r, isRebuilt := theirs[name]
		if !isLive || !isRebuilt || len(l.key) == 0 || !slices.Equal(l.key, r.key) {
			differences = append(differences, &Different{Table: name, Live: shape(l, isLive), Rebuilt: shape(r, isRebuilt)})
			continue
		}
		pairs[name] = pair{live: l, rebuilt: r}
	}
	found, counts, err := compareTables(ctx, tx, live, rebuilt, pairs)
	return append(differences, found...), counts, err
}

// shape stands for a whole table where there is no row to show.
func shape(t table, exists bool) Row {
	if !exists {
		return nil
	}
	key, columns := strings.Join(t.key, ","), strings.Join(t.columns, ",")
	return Row{"primary key": &key, "columns": &columns}
}

// compareTables compares all of them in one statement, by a hash of each row; only rows that differ are read.
func compareTables(ctx context.Context, tx pgx.Tx, live, rebuilt string, pairs map[string]pair) (differences []*Different, counts []TableCount, err error) {
	names := slices.Sorted(maps.Keys(pairs))
	if len(names) == 0 {
		return nil, nil, nil
	}
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf(`
			(WITH l AS MATERIALIZED (%s), r AS MATERIALIZED (%s), d AS (
				SELECT coalesce(l.k, r.k) AS k FROM l FULL JOIN r ON l.k = r.k
				WHERE l.h IS DISTINCT FROM r.h ORDER BY coalesce(l.k, r.k) COLLATE "C" LIMIT %d)
			SELECT %d, (SELECT count(*) FROM l), coalesce((SELECT array_agg(k) FROM d), '{}'))`,
			hashes(live, pairs[name].live), hashes(rebuilt, pairs[name].rebuilt), maxDifferences, i)
	}
	if _, err := tx.Exec(ctx, "SET LOCAL enable_seqscan = on"); err != nil {
		return nil, nil, err
	}
	rows, err := tx.Query(ctx, strings.Join(parts, " UNION ALL ")+" ORDER BY 1", pgx.QueryExecModeExec)
	if err != nil {
		return nil, nil, fmt.Errorf("compare: %w", err)
	}
	type result struct {
		I    int
		Rows int64
		Keys []string
	}
	results, err := pgx.CollectRows(rows, pgx.RowToStructByPos[result])
	if err != nil {
		return nil, nil, fmt.Errorf("compare: %w", err)
	}
	for _, r := range results {
		p := pairs[names[r.I]]
		counts = append(counts, TableCount{Table: p.live.name, Rows: r.Rows})
		for _, key := range r.Keys {
			d, err := difference(ctx, tx, live, rebuilt, p.live, p.rebuilt, key)
			if err != nil {
				return nil, nil, fmt.Errorf("compare %s: %w", p.live.name, err)
			}
			differences = append(differences, d)
		}
	}
	return differences, counts, nil
}

// hashes selects each row's key as text and a hash over its columns by name, so that their order in the
// table does not matter. Casting to text is exact for every type.
func hashes(schema string, t table) string {
	return fmt.Sprintf("SELECT %s::text AS k, sha256(convert_to(%s::text, 'UTF8')) AS h FROM %s t",
		object(t.key), object(t.columns), pgx.Identifier{schema, t.name}.Sanitize())
}

// object is an expression for columns by name, as a jsonb object of strings and nulls.
func object(columns []string) string {
	names, values := make([]string, len(columns)), make([]string, len(columns))
	for i, column := range columns {
		names[i] = "'" + strings.ReplaceAll(column, "'", "''") + "'"
		values[i] = "t." + pgx.Identifier{column}.Sanitize() + "::text"
	}
	return fmt.Sprintf("jsonb_object(ARRAY[%s]::text[], ARRAY[%s]::text[])", strings.Join(names, ","), strings.Join(values, ","))
}

func difference(ctx context.Context, tx pgx.Tx, live, rebuilt string, l, r table, key string) (*Different, error) {
	d := &Different{Table: l.name}
	for _, side := range []struct {
		schema string
		t      table
		row    *Row
	}{{live, l, &d.Live}, {rebuilt, r, &d.Rebuilt}} {
		row, err := rowByKey(ctx, tx, side.schema, side.t, key)
		if err != nil {
			return nil, err
		}
		*side.row = row
		if row != nil {
			d.Key = Row{}
			for _, column := range side.t.key {
				d.Key[column] = row[column]
			}
		}
	}
	d.Columns = unequal(d.Live, d.Rebuilt)
	return d, nil
}

// rowByKey reads one row, nil when there is none. It scans: it is for the few rows that differ.
func rowByKey(ctx context.Context, tx pgx.Tx, schema string, t table, key string) (Row, error) {
	sql := fmt.Sprintf("SELECT %s FROM %s t WHERE %s::text = $1", object(t.columns), pgx.Identifier{schema, t.name}.Sanitize(), object(t.key))
	rows, err := tx.Query(ctx, sql, pgx.QueryExecModeExec, key)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[Row])
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// unequal lists the columns that differ between two rows that both exist.
func unequal(a, b Row) []string {
	if a == nil || b == nil {
		return nil
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	var columns []string
	for column := range all {
		va, ina := a[column]
		vb, inb := b[column]
		if ina != inb || (va == nil) != (vb == nil) || va != nil && *va != *vb {
			columns = append(columns, column)
		}
	}
	slices.Sort(columns)
	return columns
}
