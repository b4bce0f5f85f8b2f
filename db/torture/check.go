package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/domain/event"
)

// Logged is an event as the log holds it at the end.
type Logged struct {
	ID      event.ID
	Process string
}

// queries count what must not be there.
var queries = []struct{ wrong, sql string }{
	{"positions that are not dense from 1", `SELECT count(*) FROM (SELECT position, row_number() OVER (ORDER BY position) AS n FROM log.log_position) p WHERE position <> n`},
	{"difference between the head and the last position", `SELECT abs(last - (SELECT coalesce(max(position), 0) FROM log.log_position)) FROM log.log_head`},
	{"events without a position", `SELECT count(*) FROM log.event e WHERE NOT EXISTS (SELECT FROM log.log_position p WHERE p.event_id = e.id)`},
	{"positions without an event", `SELECT count(*) FROM log.log_position p WHERE NOT EXISTS (SELECT FROM log.event e WHERE e.id = p.event_id)`},
	{"versions that do not ascend by one with the positions", `SELECT count(*) FROM (SELECT e.version, row_number() OVER (PARTITION BY e.stream_id ORDER BY p.position) AS n
		FROM log.event e JOIN log.log_position p ON p.event_id = e.id) v WHERE version <> n`},
	{"heads that differ from their last event", `SELECT count(*) FROM (SELECT stream_id, max(version) AS last FROM log.event GROUP BY 1) e
		FULL JOIN log.stream s ON s.id = e.stream_id WHERE s.version IS DISTINCT FROM e.last`},
	{"decisions on a state that was not the last", `SELECT count(*) FROM log.event WHERE (data->>'count')::bigint <> version`},
	{"blows that are there twice", `SELECT count(*) FROM (SELECT kind, data->>'process', data->>'writer', data->>'n' FROM log.event GROUP BY 1, 2, 3, 4 HAVING count(*) > 1) d`},
}

// Check looks into the database, as its owner, for what must not be there once every event has its position.
// It waits for that as long as patience, and answers the events in the order of their positions.
func Check(ctx context.Context, conn *pgx.Conn, patience time.Duration) (log []Logged, wrong []string, err error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var waiting bool
		if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM log.unsequenced)").Scan(&waiting); err != nil {
			return nil, nil, err
		}
		if !waiting {
			break
		}
	}
	for _, q := range queries {
		var n int64
		if err := conn.QueryRow(ctx, q.sql).Scan(&n); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", q.wrong, err)
		}
		if n != 0 {
			wrong = append(wrong, fmt.Sprintf("%s: %d", q.wrong, n))
		}
	}
	rows, err := conn.Query(ctx, "SELECT e.id, e.data->>'process' FROM log.event e JOIN log.log_position p ON p.event_id = e.id ORDER BY p.position")
	if err != nil {
		return nil, nil, err
	}
	log, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Logged])
	return log, wrong, err
}

// CheckAcks compares what writers were told with what is there. A process that ended in order was told of
// all its events; one that was killed may have written some without learning it.
func CheckAcks(log []Logged, acks []Ack, killed map[string]bool) (wrong []string) {
	there := map[event.ID]bool{}
	for _, l := range log {
		there[l.ID] = true
	}
	told := map[event.ID]bool{}
	lost, twice, untold := 0, 0, 0
	for _, a := range acks {
		if !there[a.ID] {
			lost++
		}
		if told[a.ID] {
			twice++
		}
		told[a.ID] = true
	}
	for _, l := range log {
		if !told[l.ID] && !killed[l.Process] {
			untold++
		}
	}
	for _, c := range []struct {
		wrong string
		n     int
	}{{"acknowledged events that are not there", lost}, {"events acknowledged twice", twice}, {"events that no living writer was told of", untold}} {
		if c.n > 0 {
			wrong = append(wrong, fmt.Sprintf("%s: %d", c.wrong, c.n))
		}
	}
	return wrong
}
