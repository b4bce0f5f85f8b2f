package torture

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
)

// logSize counts events, wherever they are in their life.
func logSize(t *testing.T, base *dbtest.Database) (n int) {
	t.Helper()
	if err := base.Conn(t, "").QueryRow(t.Context(), "SELECT count(*) FROM log.event").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestEventsOfLaterVersions: an event that this version does not know stops what depends on its stream, with a
// word about the way out, and nothing else.
func TestEventsOfLaterVersions(t *testing.T) {
	for code, change := range map[string]string{
		"unknown_event_kind":   "UPDATE log.event SET kind = 'conversation.rhymed' WHERE kind = 'conversation.opened' AND stream_id = $1",
		"unknown_event_schema": "UPDATE log.event SET schema = 7 WHERE kind = 'conversation.opened' AND stream_id = $1",
		"":                     "UPDATE log.event SET data = '{\"agent\":[1]}' WHERE kind = 'conversation.opened' AND stream_id = $1",
	} {
		base := dbtest.New(t)
		base.SkipReplay("the log holds events of later versions")
		first := base.Open(t, dbtest.Server)
		team := dbtest.NewTeam(t, first, "demo")
		strange, other := team.Converse(t, first), team.Converse(t, first)
		if _, err := base.Conn(t, "").Exec(t.Context(), change, strange); err != nil {
			t.Fatal(err)
		}
		d := base.Open(t, dbtest.Server) // without the first one's memory
		clear := func(what string, err error) {
			if err == nil || !fault.HasCode(err, code) && code != "" || !strings.Contains(err.Error(), "event") {
				t.Errorf("%s: %s answers %v", change, what, err)
			}
		}
		_, _, err := d.Load(t.Context(), conversation.Stream(strange, team.Space))
		clear("load", err)
		before := logSize(t, base)
		_, err = d.Execute(t.Context(), team.Message(strange, "hello"), dbtest.Meta(team.Actor()))
		clear("execute", err)
		if after := logSize(t, base); after != before {
			t.Errorf("a refused command wrote %d events", after-before)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err = d.Tail(ctx, db.Cursor{}, db.Scope{}, func(records []event.Record) error {
			for i := range records {
				if _, err := d.Decode(ctx, &records[i]); err != nil {
					return err
				}
				if _, err := d.Show(ctx, &records[i]); err != nil {
					return err
				}
			}
			return nil
		})
		clear("tail", err)
		team.Post(t, d, other, "the other conversation goes on")
	}
}

// TestTextThatCannotBeKept goes past the decisions, straight to the log.
func TestTextThatCannotBeKept(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, d, "demo")
	id := team.Converse(t, d)
	before := logSize(t, base)
	posted := func(text string) event.Event {
		return conversation.MessagePosted{Message: dbtest.NewID(), Turn: dbtest.NewID(), Run: dbtest.NewID(), Author: team.Actor(), Text: event.Seal(text)}
	}
	for name, c := range map[string]struct {
		event event.Event
		code  string
	}{
		"NUL":               {posted("a\x00b"), "not_storable"},
		"invalid UTF-8":     {posted("a\xffb"), "not_storable"},
		"lone surrogate":    {posted("a\xed\xa0\x80b"), "not_storable"},
		"NUL in plain text": {conversation.TurnEnded{Outcome: "a\x00"}, "not_storable"},
		"one byte too many": {posted(strings.Repeat("x", db.MaxSealed+1)), "invalid_field"},
		"other invalid":     {conversation.TurnEnded{Outcome: "\xc3\x28"}, "not_storable"},
	} {
		_, err := d.Append(t.Context(), dbtest.Meta(team.Actor()), db.Expected{
			Change: event.Change{Stream: conversation.Stream(id, team.Space), Events: []event.Event{c.event}}, Version: 1,
		})
		if !fault.Is(err, fault.Invalid) || !fault.HasCode(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"NUL": "a\x00b", "surrogate": "a\xed\xa0\x80b", "too long": strings.Repeat("x", db.MaxSealed+1), "none": ""} {
		_, err := d.Execute(t.Context(), team.Message(id, text), dbtest.Meta(team.Actor()))
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("message with %s: %v", name, err)
		}
	}
	var report json.RawMessage = []byte(`{"host":"\ud800"}`)
	_, err := d.Append(t.Context(), dbtest.Meta(event.System), db.Expected{Change: event.Change{
		Stream: run.Stream(dbtest.NewID(), team.Space, id), Events: []event.Event{run.SandboxPrepared{Report: report}},
	}})
	if !fault.HasCode(err, "not_storable") {
		t.Errorf("lone surrogate in a report: %v", err)
	}
	if after := logSize(t, base); after != before {
		t.Errorf("%d events were written", after-before)
	}
}

// files lists the blobs.
func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestLargestText is stored as blobs, which are then altered, lost and brought back.
func TestLargestText(t *testing.T) {
	base := dbtest.New(t)
	writer := base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, writer, "demo")
	id := team.Converse(t, writer)
	text := strings.Repeat("é", db.MaxSealed/2)
	posted := team.Post(t, writer, id, text)
	stream := run.Stream(posted.Run, team.Space, id)
	prompt := func() (string, error) {
		state, _, err := base.Open(t, dbtest.Server).Load(t.Context(), stream)
		if err != nil {
			return "", err
		}
		return state.(run.State).Prompt.Text(), nil
	}
	if got, err := prompt(); err != nil || got != text {
		t.Fatalf("%d bytes came back, %v", len(got), err)
	}
	blobs := files(t, base.BlobDir)
	if len(blobs) != 2 { // of the message and of the run's prompt
		t.Fatalf("blobs: %v", blobs)
	}
	for code, spoil := range map[string]func(path string, content []byte) error{
		"blob_altered": func(path string, content []byte) error {
			content = append([]byte(nil), content...)
			content[len(content)/2] ^= 1
			return os.WriteFile(path, content, 0o600)
		},
		"blob_missing": func(path string, _ []byte) error { return os.Remove(path) },
	} {
		kept := map[string][]byte{}
		for _, path := range blobs {
			content, err := os.ReadFile(path)
			if err = errors.Join(err, spoil(path, content)); err != nil {
				t.Fatal(err)
			}
			kept[path] = content
		}
		if _, err := prompt(); !fault.HasCode(err, code) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("%s: %v", code, err)
		}
		for path, content := range kept {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := prompt(); err != nil || got != text {
			t.Errorf("after the backup: %d bytes, %v", len(got), err)
		}
	}
}
