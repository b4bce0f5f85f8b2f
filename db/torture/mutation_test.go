package torture

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cairn/db/dbtest"
)

// sequenceWith is log_sequence with another lock, another choice of rows and another place for the lock.
func sequenceWith(lock, with, where, after string) string {
	return fmt.Sprintf(`
CREATE TABLE IF NOT EXISTS log.mutation (last bigint);
GRANT ALL ON log.mutation TO PUBLIC;
CREATE OR REPLACE FUNCTION log.log_sequence(lim integer, low bigint)
RETURNS integer LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE n integer;
BEGIN
    %s
    WITH %s moved AS (
        DELETE FROM log.unsequenced u
        WHERE seq > low AND seq <= (SELECT max(seq) FROM (SELECT seq FROM log.unsequenced WHERE seq > low ORDER BY seq LIMIT lim) AS batch) %s
        RETURNING seq, event_id, space_id, topic_id, stream_id
    ), placed AS (
        INSERT INTO log.log_position (position, event_id, space_id, topic_id, stream_id)
        SELECT (SELECT last FROM log.log_head) + row_number() OVER (ORDER BY seq), event_id, space_id, topic_id, stream_id FROM moved
        RETURNING 1
    )
    SELECT count(*) INTO n FROM placed;
    IF n > 0 THEN
        UPDATE log.log_head SET last = last + n;
        PERFORM pg_notify('cairn_position', '');
    END IF;
    %s
    RETURN n;
END $$`, lock, with, where, after)
}

const lock = "PERFORM pg_advisory_xact_lock(7236838231894510693);"

// mutations break one rule of the sequencing each; the word is what the checks must say.
var mutations = map[string]struct{ sql, red string }{
	// Each process places its own events only: whoever is second in a stream may come first, and those of a
	// killed process never come.
	"own": {
		sequenceWith(lock, "", `AND EXISTS (SELECT FROM log.event e WHERE e.id = u.event_id AND e.actor = 'worker/' || current_setting('application_name'))`, ""),
		"without a position",
	},
	// What is older than the last row seen is taken for done: a slow transaction's events are stranded.
	"skip": {sequenceWith(lock, "", "AND seq > coalesce((SELECT max(last) FROM log.mutation), 0)",
		`IF n > 0 THEN DELETE FROM log.mutation; INSERT INTO log.mutation SELECT pg_sequence_last_value('log.unsequenced_seq_seq'); END IF;`), "without a position"},
	// The lock and the work are one statement: its snapshot is older than the lock.
	"one statement": {sequenceWith("", "locked AS MATERIALIZED (SELECT pg_advisory_xact_lock(7236838231894510693)::text AS l),", "AND (SELECT l FROM locked) IS NOT NULL", ""), "duplicate key"},
	// So does a transaction whose snapshot was taken before the lock.
	"repeatable read": {"ALTER ROLE cairn_server IN DATABASE %[1]s SET default_transaction_isolation = 'repeatable read'", "could not serialize"},
	"no lock":         {sequenceWith("", "", "", ""), "duplicate key"},
}

// TestTortureGoesRed proves that the checks see what they are there for. The two mutations that lose events
// run always, all of them in make torture.
func TestTortureGoesRed(t *testing.T) {
	names := []string{"own", "skip"}
	if setting("CAIRN_TORTURE_SECONDS", 0) > 0 {
		names = append(names, "one statement", "repeatable read", "no lock")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			f := burn(t, 1500*time.Millisecond, 1, mutations[name].sql)
			said := strings.Join(append(f.wrong, f.warnings...), "\n")
			t.Logf("%d events; wrong:\n%s\n%d warnings, first %.300q", f.events, strings.Join(f.wrong, "\n"), len(f.warnings), strings.Join(f.warnings, "\n"))
			if !strings.Contains(said, mutations[name].red) {
				t.Errorf("the mutation was not noticed: want %q in:\n%s", mutations[name].red, said)
			}
		})
	}
}

func mutate(t *testing.T, base *dbtest.Database, sql string) {
	t.Helper()
	if strings.Contains(sql, "%[1]s") {
		sql = fmt.Sprintf(sql, base.Name)
	}
	if _, err := base.Conn(t, "").Exec(context.Background(), sql); err != nil {
		t.Fatalf("mutation: %v", err)
	}
}
