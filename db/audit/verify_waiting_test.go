package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/event"
)

// wait adds events that have no position yet to a stream, as an append would have left them.
func (f *fixture) wait(t *testing.T, change func(*event.Record), after event.Record, n int) []event.Record {
	t.Helper()
	var made []event.Record
	for range n {
		r := after
		r.ID, r.Version, r.Position = dbtest.NewID(), after.Version+1, 0
		change(&r)
		r.LeafHash = event.Leaf(&r)
		f.exec(t, "INSERT INTO log.event VALUES ($1,$2,$3,$4,$5,$6,$7,$8::text::json,$9,$10,$11,$12,$13,$14,$15)", r.ID, r.StreamID, r.Version, r.SpaceID, r.TopicID, r.Kind, r.Schema,
			string(r.Data), r.Actor, r.CommandID, r.CauseID, r.TraceID, r.RecordedAt, r.LeafVersion, r.LeafHash)
		f.exec(t, "INSERT INTO log.unsequenced (event_id, stream_id, space_id, topic_id) VALUES ($1, $2, $3, $4)", r.ID, r.StreamID, r.SpaceID, r.TopicID)
		f.exec(t, "UPDATE log.stream SET version = $2 WHERE id = $1", r.StreamID, r.Version)
		made, after = append(made, r), r
	}
	return made
}

// Events without a position are part of the log: they are checked like the others and named by their id.
func TestVerifyWaitingEvents(t *testing.T) {
	f := newFixture(t)
	last := f.at(t, f.head)
	defer f.mend(t)
	waiting := f.wait(t, func(*event.Record) {}, last, 3)
	if report := f.green(t); report.Waiting != 3 || report.Events != f.head {
		t.Errorf("%+v", report)
	}
	for name, c := range map[string]struct {
		sql, what string
		id        event.ID
	}{
		"altered":             {`UPDATE log.event SET actor = 'x' || substr(actor, 2) WHERE id = '` + waiting[1].ID.String() + `'`, "leaf_hash", waiting[1].ID},
		"deleted":             {`DELETE FROM log.event WHERE id = '` + waiting[1].ID.String() + `'`, "event of this place", waiting[1].ID},
		"no longer waiting":   {`DELETE FROM log.unsequenced WHERE event_id = '` + waiting[2].ID.String() + `'`, "neither a position", waiting[2].ID},
		"gap in the versions": {`DELETE FROM log.unsequenced WHERE event_id = '` + waiting[1].ID.String() + `'`, "versions", waiting[2].ID},
		"twice":               {`INSERT INTO log.unsequenced (event_id, stream_id, space_id, topic_id) SELECT event_id, stream_id, space_id, topic_id FROM log.unsequenced WHERE event_id = '` + waiting[2].ID.String() + `'`, "versions", waiting[2].ID},
		"topic beside":        {`UPDATE log.unsequenced SET topic_id = gen_random_uuid() WHERE event_id = '` + waiting[0].ID.String() + `'`, "topic_id beside", waiting[0].ID},
		"order":               {`UPDATE log.unsequenced u SET event_id = CASE event_id WHEN '` + waiting[0].ID.String() + `' THEN '` + waiting[1].ID.String() + `'::uuid WHEN '` + waiting[1].ID.String() + `' THEN '` + waiting[0].ID.String() + `'::uuid ELSE event_id END`, "versions", waiting[1].ID},
	} {
		t.Run(name, func(t *testing.T) {
			f.exec(t, "BEGIN; CREATE TEMP TABLE e ON COMMIT DROP AS TABLE log.event; CREATE TEMP TABLE u ON COMMIT DROP AS TABLE log.unsequenced;"+
				"CREATE TABLE pristine.e AS TABLE e; CREATE TABLE pristine.u AS TABLE u; COMMIT")
			f.exec(t, c.sql)
			if b := f.red(t); !same(b.EventID, c.id) || b.Position != nil || !strings.Contains(b.Error(), c.what) {
				t.Errorf("found %v, want event %s and %q", b, c.id, c.what)
			}
			f.exec(t, `TRUNCATE log.event, log.unsequenced; INSERT INTO log.event TABLE pristine.e; INSERT INTO log.unsequenced OVERRIDING SYSTEM VALUE TABLE pristine.u;
				DROP TABLE pristine.e, pristine.u`)
			f.green(t)
		})
	}
}

// What this version cannot decode it can still verify: the hash is over the stored bytes.
func TestVerifyOfAFutureSchema(t *testing.T) {
	f := newFixture(t)
	f.wait(t, func(r *event.Record) {
		r.Kind, r.Schema, r.Data = "run.from_the_future", 99, []byte(`{"new": {"deep": [1, 2]}}`)
	}, f.at(t, f.head), 1)
	if report := f.green(t); report.Waiting != 1 {
		t.Errorf("%+v", report)
	}
	f.session(t, func(d *db.DB) { f.checkpoint(t, d) })
	if report := f.green(t); report.Signed != f.head+1 || report.Waiting != 0 {
		t.Errorf("%+v", report)
	}
	f.exec(t, `UPDATE log.event SET data = '{"new": {"deep": [1, 3]}}' WHERE kind = 'run.from_the_future'`)
	if b := f.red(t); !same(b.Position, f.head+1) {
		t.Errorf("found %v", b)
	}
}

func TestVerifyUnknownLeafVersion(t *testing.T) {
	f := newFixture(t)
	made := f.wait(t, func(r *event.Record) { r.LeafVersion = 9 }, f.at(t, f.head), 1)
	if b := f.red(t); !same(b.EventID, made[0].ID) || b.Expected != "1" || b.Found != "9" || !strings.Contains(b.What, "leaf_version") {
		t.Errorf("found %+v", b)
	}
}

// Large fields lie outside the database. One that is missing or altered is found, unless its key is gone.
func TestVerifyBlobs(t *testing.T) {
	f := newFixture(t)
	var team dbtest.Team
	f.session(t, func(d *db.DB) {
		team = dbtest.NewTeam(t, d, "demo")
		team.Post(t, d, team.Converse(t, d), strings.Repeat("large ", 20_000))
		settle(t, d)
	})
	report := f.green(t)
	if report.Blobs == nil || *report.Blobs < 1 {
		t.Fatalf("%+v", report)
	}
	files, err := filepath.Glob(filepath.Join(f.BlobDir, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	put := func(content []byte) {
		if err := os.WriteFile(files[0], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(append(content[:len(content)-1:len(content)-1], content[len(content)-1]^1))
	if b := f.red(t); b.Position == nil || b.EventID == nil || !strings.Contains(b.Error(), "altered") {
		t.Errorf("found %v", b)
	}
	os.Remove(files[0])
	if b := f.red(t); b.Position == nil || b.EventID == nil || !strings.Contains(b.Error(), "missing") {
		t.Errorf("found %v", b)
	}
	f.exec(t, "UPDATE vault.subject_key SET wrapped = NULL, destroyed_at = now() WHERE subject = $1", team.Space)
	f.green(t)
}
