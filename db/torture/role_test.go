package torture

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/event"
)

// The rights of a table, in the letters of grants below.
var rights = []struct{ letter, name string }{
	{"r", "SELECT"}, {"a", "INSERT"}, {"w", "UPDATE"}, {"d", "DELETE"}, {"D", "TRUNCATE"}, {"x", "REFERENCES"}, {"t", "TRIGGER"},
}

// grants is everything that the two roles may do: server, worker. A table, sequence or function that is not
// here fails the test, so that nobody adds one without deciding who may use it.
var grants = map[string][2]string{
	"log.command":        {"rad", "ra"},
	"log.event":          {"ra", "ra"},
	"log.lease":          {"rawd", "rawd"},
	"log.log_checkpoint": {"ra", "ra"},
	"log.log_head":       {"r", "r"},
	"log.log_identity":   {"r", "r"},
	"log.log_position":   {"r", "r"},
	"log.log_tree":       {"ra", "ra"},
	"log.stream":         {"raw", "raw"},
	"log.unsequenced":    {"ra", "ra"},

	"vault.credential":  {"rawd", ""},
	"vault.deployment":  {"ra", "r"},
	"vault.provider":    {"rawd", ""},
	"vault.subject_key": {"raw", "r"},

	"public.cairn_log_version":  {"r", "r"},
	"public.river_job":          {"rawd", "rawd"},
	"public.river_leader":       {"rawd", "rawd"},
	"public.river_migration":    {"r", "r"},
	"public.river_notification": {"rawd", "rawd"},
	"public.river_queue":        {"rawd", "rawd"},

	"view.account":            {"rawd", "rawd"},
	"view.agent":              {"rawd", "rawd"},
	"view.agent_revision":     {"rawd", "rawd"},
	"view.cairn_view_version": {"r", "r"},
	"view.claim":              {"rawd", "rawd"},
	"view.conversation":       {"rawd", "rawd"},
	"view.membership":         {"rawd", "rawd"},
	"view.message":            {"rawd", "rawd"},
	"view.run":                {"rawd", "rawd"},
	"view.space":              {"rawd", "rawd"},
	"view.file":               {"rawd", "rawd"},
	"view.run_changes":        {"rawd", "rawd"},
	"view.run_egress":         {"rawd", "rawd"},
	"view.task":               {"rawd", "rawd"},
	"view.tool_call":          {"rawd", "rawd"},

	"log.unsequenced_seq_seq":        {"r", "r"},
	"view.cairn_view_version_id_seq": {"", ""},
	"log.log_advance":                {"X", "X"},
	"log.log_assert":                 {"X", "X"},
	"log.log_gate":                   {"X", "X"},
	"log.log_sequence":               {"X", "X"},
}

var roles = [2]string{dbtest.Server, dbtest.Worker}

// TestGrants compares what the database says with the list, both ways.
func TestGrants(t *testing.T) {
	base := dbtest.New(t)
	conn := base.Conn(t, "")
	rows, err := conn.Query(t.Context(), `
		SELECT n.nspname || '.' || c.relname, c.oid, c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('log', 'vault', 'view', 'public') AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
		UNION ALL
		SELECT n.nspname || '.' || p.proname, p.oid, 'F' FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ('log', 'vault', 'view')`)
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		name, kind string
		oid        uint32
	}
	var objects []object
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.name, &o.oid, &o.kind); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	found := map[string]bool{}
	for _, o := range objects {
		found[o.name] = true
		want, listed := grants[o.name]
		if !listed && o.kind == "S" && strings.HasPrefix(o.name, "public.") {
			continue // a sequence of the queue or of the migrator
		}
		if !listed {
			t.Errorf("%s (%s) has no entry: decide who may use it", o.name, o.kind)
		}
		for i, role := range roles {
			if got := privileges(t, conn.QueryRow, role, o.oid, o.kind); got != want[i] {
				t.Errorf("%s on %s: has %q, want %q", role, o.name, got, want[i])
			}
		}
	}
	for name := range grants {
		if !found[name] {
			t.Errorf("%s is listed and does not exist", name)
		}
	}
}

// privileges writes what a role may do with an object, on the whole or on any of its columns.
func privileges(t *testing.T, query func(ctx context.Context, sql string, args ...any) pgx.Row, role string, oid uint32, kind string) (got string) {
	t.Helper()
	ask := func(function, right, letter string) {
		var has bool
		if err := query(t.Context(), "SELECT "+function+"($1::name, $2::oid, $3)", role, oid, right).Scan(&has); err != nil {
			t.Fatal(err)
		}
		if has {
			got += letter
		}
	}
	switch kind {
	case "F":
		ask("has_function_privilege", "EXECUTE", "X")
	case "S":
		ask("has_sequence_privilege", "SELECT", "r")
		ask("has_sequence_privilege", "USAGE", "u")
		ask("has_sequence_privilege", "UPDATE", "w")
	default:
		for _, right := range rights {
			function := "has_table_privilege"
			if strings.Contains("rawx", right.letter) {
				function = "has_any_column_privilege"
			}
			ask(function, right.name, right.letter)
		}
	}
	return got
}

// TestRefusals does what must not be done, for the refusal itself: the database's word, not the catalog's.
func TestRefusals(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, d, "demo")
	team.Post(t, d, team.Converse(t, d), "hello")
	both := []string{
		"UPDATE log.event SET actor = 'system'", "UPDATE log.event SET data = '{}'", "DELETE FROM log.event", "TRUNCATE log.event",
		"INSERT INTO log.log_position VALUES (1000000, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid())",
		"UPDATE log.log_position SET position = -position", "DELETE FROM log.log_position", "TRUNCATE log.log_position",
		"UPDATE log.log_head SET last = 0", "DELETE FROM log.log_head", "INSERT INTO log.log_head VALUES (false, 1)",
		"UPDATE log.log_checkpoint SET note = ''", "DELETE FROM log.log_checkpoint", "UPDATE log.log_tree SET hash = ''", "DELETE FROM log.log_tree",
		"DELETE FROM log.stream", "TRUNCATE log.stream", "DELETE FROM log.unsequenced", "UPDATE log.unsequenced SET event_id = gen_random_uuid()",
		"SELECT nextval('log.unsequenced_seq_seq')", "SELECT setval('log.unsequenced_seq_seq', 1)",
		"UPDATE log.log_identity SET incarnation = 0", "UPDATE log.command SET answer = '{}'", "DELETE FROM vault.subject_key", "UPDATE vault.deployment SET key_check = ''",
		"ALTER TABLE log.event DISABLE TRIGGER ALL", "DROP TABLE log.event", "CREATE TABLE log.mine (a int)", "CREATE TABLE vault.mine (a int)",
		"CREATE TABLE view.mine (a int)", "CREATE TABLE public.mine (a int)", "CREATE SCHEMA mine", "CREATE OR REPLACE FUNCTION log.log_sequence(integer, bigint) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
		"UPDATE public.cairn_log_version SET version_id = 0", "DELETE FROM view.cairn_view_version", "DELETE FROM public.river_migration",
		"SET session_replication_role = replica", "SET ROLE postgres",
	}
	worker := []string{
		"SELECT * FROM vault.credential", "SELECT * FROM vault.provider", "INSERT INTO vault.provider VALUES ('x', '')", "DELETE FROM vault.credential",
		"UPDATE vault.subject_key SET wrapped = NULL, destroyed_at = now()", "INSERT INTO vault.subject_key (subject, wrapped) VALUES (gen_random_uuid(), '')",
		"INSERT INTO vault.deployment (key_check) VALUES ('')", "DELETE FROM log.command",
	}
	for role, statements := range map[string][]string{dbtest.Server: both, dbtest.Worker: slices.Concat(both, worker)} {
		conn := base.Conn(t, role)
		for _, sql := range statements {
			_, err := conn.Exec(t.Context(), sql)
			if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "42501" {
				t.Errorf("%s: %s: %v, want a refusal", role, sql, err)
			}
		}
	}
}

// definers are the functions that run with their owner's rights.
var definers = []string{"log.log_sequence"}

func TestFunctionsFixTheirPath(t *testing.T) {
	base := dbtest.New(t)
	rows, err := base.Conn(t, "").Query(t.Context(), `SELECT n.nspname || '.' || p.proname, p.prosecdef, coalesce(array_to_string(p.proconfig, ';'), '')
		FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ('log', 'vault', 'view') OR p.prosecdef ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	var definer []string
	for rows.Next() {
		var name, config string
		var secdef bool
		if err := rows.Scan(&name, &secdef, &config); err != nil {
			t.Fatal(err)
		}
		if secdef {
			definer = append(definer, name)
		}
		if secdef && !strings.Contains(config, "search_path=pg_catalog, pg_temp") {
			t.Errorf("%s: its search_path is not fixed: %q", name, config)
		}
	}
	if !slices.Equal(definer, definers) {
		t.Errorf("functions with their owner's rights: %v, want %v", definer, definers)
	}
}

// TestHostilePath puts tables and functions of the same names before the real ones in the caller's path.
func TestHostilePath(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server, func(o *db.Options) { o.NoPositions = true })
	team := dbtest.NewTeam(t, d, "demo")
	id := team.Converse(t, d)
	conn := base.Conn(t, dbtest.Server)
	for _, sql := range []string{
		"CREATE TEMP TABLE unsequenced (seq bigint, event_id uuid, stream_id uuid, space_id uuid, topic_id uuid)",
		"CREATE TEMP TABLE log_position (position bigint, event_id uuid, space_id uuid, topic_id uuid, stream_id uuid)",
		"CREATE TEMP TABLE log_head (last bigint)", "INSERT INTO log_head VALUES (1000)", "CREATE TEMP TABLE stream (id uuid, version bigint)", "CREATE TEMP TABLE subject_key (subject uuid, wrapped bytea)",
		"CREATE FUNCTION pg_temp.pg_advisory_xact_lock(bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile %', current_user; END $$",
		"CREATE FUNCTION pg_temp.pg_advisory_xact_lock_shared(bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile %', current_user; END $$",
		"CREATE FUNCTION pg_temp.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile %', current_user; END $$",
		"CREATE FUNCTION pg_temp.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile %', current_user; END $$",
		"CREATE FUNCTION pg_temp.same(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile %', current_user; END $$",
		"CREATE OPERATOR pg_temp.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = pg_temp.same)",
		"CREATE OPERATOR pg_temp.<> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = pg_temp.same)",
		"SET search_path = pg_temp, log, vault, pg_catalog",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if _, err := conn.Exec(t.Context(), "SELECT log.log_gate($1::uuid[])", []event.ID{team.Space}); err != nil {
		t.Errorf("gate: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT log.log_assert($1::uuid[], '{1}')", []event.ID{id}); err != nil {
		t.Errorf("assert: %v", err)
	}
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT log.log_sequence(1000, 0)").Scan(&n); err != nil || n == 0 {
		t.Errorf("sequence: %d, %v", n, err)
	}
	records, err := d.Since(t.Context(), 0, db.Scope{}, 1000)
	if err != nil || len(records) != n || records[0].Position != 1 {
		t.Errorf("%d records of %d, %v", len(records), n, err)
	}
}
