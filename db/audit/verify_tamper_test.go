package audit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cairn/db/audit"
	"cairn/db/dbtest"
	"cairn/domain/event"
)

func isBroken(err error) bool {
	_, ok := errors.AsType[*audit.Broken](err)
	return ok
}

func same[T comparable](p *T, want T) bool { return p != nil && *p == want }

// alter changes as little as possible of a value of a column's type.
var alter = map[string]string{
	"uuid":                     "overlay(%[1]s::text placing (CASE right(%[1]s::text, 1) WHEN '0' THEN '1' ELSE '0' END) from 36)::uuid",
	"bigint":                   "%[1]s + 1000",
	"smallint":                 "%[1]s + 1",
	"text":                     "'x' || substr(%[1]s, 2)",
	"json":                     "(%[1]s::text || ' ')::json",
	"timestamp with time zone": "%[1]s + interval '1 microsecond'",
	"bytea":                    "set_byte(%[1]s, 31, get_byte(%[1]s, 31) # 1)",
}

// One byte of any column of an event, whether a checkpoint covers it or not, names its position.
func TestTamperAnyColumn(t *testing.T) {
	f := newFixture(t)
	f.green(t)
	rows, err := f.owner.Query(t.Context(), "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'log' AND table_name = 'event'")
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]string{}
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			t.Fatal(err)
		}
		columns[name] = fmt.Sprintf(alter[kind], name)
	}
	if len(columns) != 15 {
		t.Fatalf("%d columns: does the leaf have all of them?", len(columns))
	}
	columns["data "] = "replace(data::text, ':', ': ')::json"
	columns["recorded_at "] = "'infinity'"
	for name, expression := range columns {
		for _, position := range []int64{5, f.head} {
			t.Run(fmt.Sprintf("%s/%d", name, position), func(t *testing.T) {
				defer f.mend(t)
				original := f.at(t, position)
				f.exec(t, fmt.Sprintf("UPDATE log.event SET %s = %s WHERE id = $1", name, expression), original.ID)
				b := f.red(t)
				if !same(b.Position, position) || !same(b.EventID, original.ID) {
					t.Errorf("found %v", b)
				}
			})
		}
	}
	f.green(t)
}

// swap exchanges values of two positions; the unique columns need a detour.
const swap = `UPDATE log.log_position SET event_id = gen_random_uuid() WHERE position IN (%[1]d, %[2]d);
	UPDATE log.log_position l SET event_id = o.event_id FROM pristine.log_position o WHERE l.position = %[1]d AND o.position = %[2]d;
	UPDATE log.log_position l SET event_id = o.event_id FROM pristine.log_position o WHERE l.position = %[2]d AND o.position = %[1]d;`

const swapColumns = `UPDATE log.log_position l SET space_id = o.space_id, topic_id = o.topic_id, stream_id = o.stream_id
	FROM pristine.log_position o WHERE l.event_id = o.event_id;`

// cut removes the end consistently, and with it what the database knows of it.
const cut = `DELETE FROM log.event e USING log.log_position p WHERE p.event_id = e.id AND p.position > %[1]d;
	DELETE FROM log.log_position WHERE position > %[1]d;
	UPDATE log.log_head SET last = %[1]d;
	UPDATE log.stream s SET version = (SELECT coalesce(max(version), 1) FROM log.event e WHERE e.stream_id = s.id);
	DELETE FROM log.stream s WHERE NOT EXISTS (SELECT FROM log.event e WHERE e.stream_id = s.id);`

const cutSigned = cut + `DELETE FROM log.log_checkpoint WHERE size > %[1]d;`

func TestTamperRows(t *testing.T) {
	f := newFixture(t)
	first := f.at(t, 7)
	var later int64 // a later position of the same stream
	err := f.owner.QueryRow(t.Context(), `SELECT min(b.position) FROM log.log_position a JOIN log.log_position b USING (stream_id)
		WHERE a.position >= 7 AND b.position > a.position`).Scan(&later)
	if err != nil {
		t.Fatal(err)
	}
	var sooner, next, other int64
	scan := func(sql string, to ...any) {
		if err := f.owner.QueryRow(t.Context(), sql).Scan(to...); err != nil {
			t.Fatal(err)
		}
	}
	scan(fmt.Sprintf(`SELECT max(a.position) FROM log.log_position a JOIN log.log_position b USING (stream_id) WHERE b.position = %d AND a.position < b.position`, later), &sooner)
	// Neighbours of different streams: exchanged, every stream is still in order.
	scan(`SELECT min(a.position), min(a.position) + 1 FROM log.log_position a JOIN log.log_position b ON b.position = a.position + 1 AND b.stream_id <> a.stream_id
		WHERE a.position > 8`, &next, &other)
	proven, span := f.sizes[1], f.sizes[2]
	for name, c := range map[string]struct {
		position int64
		what     string
		sql      string
		more     func()
	}{
		"event deleted":                 {7, "event of this place", `DELETE FROM log.event WHERE id = '` + first.ID.String() + `'`, nil},
		"position deleted":              {7, "dense", `DELETE FROM log.log_position WHERE position = 7`, nil},
		"first position deleted":        {1, "dense", `DELETE FROM log.log_position WHERE position = 1`, nil},
		"last position deleted":         {f.head, "log_head", fmt.Sprintf(`DELETE FROM log.log_position WHERE position = %d`, f.head), nil},
		"position of nothing":           {f.head + 1, "event of this place", fmt.Sprintf(`INSERT INTO log.log_position SELECT %d, gen_random_uuid(), space_id, topic_id, stream_id FROM log.log_position WHERE position = 1`, f.head+1), nil},
		"log_head too low":              {f.head, "log_head", `UPDATE log.log_head SET last = last - 1`, nil},
		"log_head too high":             {f.head + 1, "log_head", `UPDATE log.log_head SET last = last + 1`, nil},
		"space beside position":         {7, "space_id beside", `UPDATE log.log_position SET space_id = gen_random_uuid() WHERE position = 7`, nil},
		"topic beside position":         {7, "topic_id beside", `UPDATE log.log_position SET topic_id = gen_random_uuid() WHERE position = 7`, nil},
		"stream beside position":        {7, "stream_id beside", `UPDATE log.log_position SET stream_id = gen_random_uuid() WHERE position = 7`, nil},
		"data of two swapped":           {7, "leaf_hash", `UPDATE log.event e SET data = o.data FROM pristine.event o, log.log_position a, log.log_position b WHERE (a.position, b.position) IN ((7, 9), (9, 7)) AND e.id = a.event_id AND o.id = b.event_id`, nil},
		"event ids swapped, one stream": {sooner, "versions", fmt.Sprintf(swap+swapColumns, sooner, later), nil},
		"event ids swapped, streams":    {next, "beside the position", fmt.Sprintf(swap, next, other), nil},
		"event ids and columns swapped": {next, "stored hash", fmt.Sprintf(swap+swapColumns, next, other), nil},
		"swapped with tree":             {proven + 1, "not those that were signed", fmt.Sprintf(swap+swapColumns, span-1, span), func() { f.replant(t, f.signed) }},
		"leaf recomputed":               {7, "stored hash", `UPDATE log.event SET data = '{}' WHERE id = '` + first.ID.String() + `'`, func() { f.rehash(t, 7) }},
		"leaf and tree recomputed": {
			proven + 1, "not those that were signed", fmt.Sprintf(`UPDATE log.event e SET actor = 'system' FROM log.log_position p WHERE p.event_id = e.id AND p.position = %d`, span),
			func() { f.rehash(t, span); f.replant(t, f.signed) },
		},
		"leaf, tree and checkpoints removed": {proven + 1, "checkpoint file", fmt.Sprintf(`UPDATE log.event e SET actor = 'system' FROM log.log_position p WHERE p.event_id = e.id AND p.position = %d;
			DELETE FROM log.log_checkpoint WHERE size > %d`, span, proven), func() { f.rehash(t, span); f.replant(t, proven) }},
		"tail cut":                          {f.signed - 2, "was cut", fmt.Sprintf(cut, f.signed-3), nil},
		"tail cut with tree and checkpoint": {proven + 1, "was cut", fmt.Sprintf(cutSigned, proven), func() { f.replant(t, proven) }},
		"all cut":                           {1, "was cut", fmt.Sprintf(cutSigned, 0) + `TRUNCATE log.log_tree`, nil},
		"stored leaf altered":               {1, "stored hash 0", `UPDATE log.log_tree SET hash = set_byte(hash, 0, get_byte(hash, 0) # 1) WHERE index = 0`, nil},
		"stored node altered":               {4, "stored hash 6", `UPDATE log.log_tree SET hash = set_byte(hash, 0, get_byte(hash, 0) # 1) WHERE index = 6`, nil},
		"stored hash deleted":               {4, "stored hash 6", `DELETE FROM log.log_tree WHERE index = 6`, nil},
		"checkpoint text altered":           {proven, "signed by the log's key", fmt.Sprintf(`UPDATE log.log_checkpoint SET note = replace(note, 'incarnation 1', 'incarnation 2') WHERE size = %d`, proven), nil},
		"checkpoint signature altered":      {proven, "signed by the log's key", fmt.Sprintf(`UPDATE log.log_checkpoint SET note = reverse(note) WHERE size = %d`, proven), nil},
		"checkpoint size altered":           {proven, "beside the note", fmt.Sprintf(`UPDATE log.log_checkpoint SET size = size - 1 WHERE size = %d`, proven), nil},
		"checkpoint incarnation altered":    {proven, "beside the note", fmt.Sprintf(`UPDATE log.log_checkpoint SET incarnation = 2 WHERE size = %d`, proven), nil},
		"checkpoint time altered":           {proven, "beside the note", fmt.Sprintf(`UPDATE log.log_checkpoint SET at = at + interval '1 microsecond' WHERE size = %d`, proven), nil},
		"checkpoint deleted":                {proven, "database lacks", fmt.Sprintf(`DELETE FROM log.log_checkpoint WHERE size = %d`, proven), nil},
	} {
		t.Run(name, func(t *testing.T) {
			defer f.mend(t)
			f.exec(t, c.sql)
			if c.more != nil {
				c.more()
			}
			if b := f.red(t); !same(b.Position, c.position) || !strings.Contains(b.Error(), c.what) {
				t.Errorf("found %v, want position %d and %q", b, c.position, c.what)
			}
		})
	}
	f.green(t)
}

// What has no position is named by its event, its stream or in words.
func TestTamperElsewhere(t *testing.T) {
	f := newFixture(t)
	stranger, seventh := dbtest.NewID(), f.at(t, 7)
	stream := seventh.Stream()
	for name, c := range map[string]struct {
		event  event.ID
		stream string
		what   string
		sql    string
	}{
		"event without a position": {stranger, "", "neither a position nor waits", `INSERT INTO log.event SELECT '` + stranger.String() + `', stream_id, version + 1000, space_id, topic_id, kind, schema, data, actor,
			command_id, cause_id, trace_id, recorded_at, leaf_version, leaf_hash FROM log.event WHERE id = (SELECT event_id FROM log.log_position WHERE position = 7)`},
		"waiting and placed":    {f.at(t, 7).ID, "", "also waits", `INSERT INTO log.unsequenced (event_id, stream_id, space_id, topic_id) SELECT event_id, stream_id, space_id, topic_id FROM log.log_position WHERE position = 7`},
		"waiting for nothing":   {stranger, "", "event of this place", `INSERT INTO log.unsequenced (event_id, stream_id, space_id, topic_id) SELECT '` + stranger.String() + `', stream_id, space_id, topic_id FROM log.log_position WHERE position = 7`},
		"head too high":         {event.ID{}, stream.String(), "head of a stream", `UPDATE log.stream SET version = version + 1 WHERE id = '` + stream.ID.String() + `'`},
		"head of another kind":  {event.ID{}, "other/" + stream.ID.String(), "kind", `UPDATE log.stream SET kind = 'other' WHERE id = '` + stream.ID.String() + `'`},
		"head of another space": {event.ID{}, stream.String(), "space_id", `UPDATE log.stream SET space_id = gen_random_uuid() WHERE id = '` + stream.ID.String() + `'`},
		"head of another topic": {event.ID{}, stream.String(), "topic_id", `UPDATE log.stream SET topic_id = gen_random_uuid() WHERE id = '` + stream.ID.String() + `'`},
		"head of nothing":       {event.ID{}, "run/" + stranger.String(), "head of a stream", `INSERT INTO log.stream VALUES ('` + stranger.String() + `', 'run', gen_random_uuid(), gen_random_uuid(), 1)`},
		"head deleted":          {event.ID{}, "", "has events but no head", `DELETE FROM log.stream WHERE id = '` + stream.ID.String() + `'`},
		"log_id":                {event.ID{}, "", "log_id", `UPDATE log.log_identity SET log_id = gen_random_uuid()`},
		"incarnation":           {event.ID{}, "", "incarnation", `UPDATE log.log_identity SET incarnation = 2`},
		"trace_id null":         {seventh.ID, stream.String(), "null", `ALTER TABLE log.event ALTER trace_id DROP NOT NULL; UPDATE log.event SET trace_id = NULL WHERE id = '` + seventh.ID.String() + `'`},
		"topic_id null":         {seventh.ID, stream.String(), "null", `ALTER TABLE log.event ALTER topic_id DROP NOT NULL; UPDATE log.event SET topic_id = NULL WHERE id = '` + seventh.ID.String() + `'`},
		"position's topic null": {seventh.ID, "", "null", `ALTER TABLE log.log_position ALTER topic_id DROP NOT NULL; UPDATE log.log_position SET topic_id = NULL WHERE position = 7`},
		"log_head deleted":      {event.ID{}, "", "rows in log_head", `DELETE FROM log.log_head`},
		"log_identity deleted":  {event.ID{}, "", "rows in log_identity", `DELETE FROM log.log_identity`},
		"checkpoint's time":     {event.ID{}, "", "beside the note", `UPDATE log.log_checkpoint SET at = 'infinity' WHERE size = ` + fmt.Sprint(f.sizes[1])},
		"hash too many":         {event.ID{}, "", "hashes in log_tree", `INSERT INTO log.log_tree SELECT max(index) + 1, sha256('') FROM log.log_tree`},
	} {
		t.Run(name, func(t *testing.T) {
			defer f.mend(t)
			f.exec(t, c.sql)
			b := f.red(t)
			if !strings.Contains(b.Error(), c.what) || !c.event.IsZero() && !same(b.EventID, c.event) || c.stream != "" && b.Stream != c.stream {
				t.Errorf("found %v, want %q, event %s, stream %s", b, c.what, c.event, c.stream)
			}
		})
	}
	f.green(t)
}
