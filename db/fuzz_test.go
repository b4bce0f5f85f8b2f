package db_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/catalog"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
)

var (
	fuzzSpace  = event.ID{15: 7}
	fuzzStream = event.Ref{Kind: conversation.Kind, ID: event.ID{15: 8}, Space: fuzzSpace, Topic: event.ID{15: 8}}
)

func fuzzSealer(f *testing.F) db.Sealer {
	f.Helper()
	dir := f.TempDir()
	keys, err := db.LoadKeyring(dir+"/keys", true)
	if err != nil {
		f.Fatal(err)
	}
	blobs, err := db.OpenBlobStore(dir + "/blobs")
	if err != nil {
		f.Fatal(err)
	}
	s, err := db.NewSealer(keys, blobs, fuzzSpace)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// stored turns a sealed event into what the log would hold, and back into what is read from there.
func stored(t testing.TB, e event.Event) event.Event {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	read, err := catalog.Registry().Decode(e.Kind(), 1, data)
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return read
}

// FuzzSeal: any text comes back from its own place, and from no other.
func FuzzSeal(f *testing.F) {
	s := fuzzSealer(f)
	for _, seed := range []string{"", "a", "\x00\xff", strings.Repeat("é", 20_000), strings.Repeat("x", 32<<10), strings.Repeat("x", 32<<10+1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sealed, err := s.Seal(fuzzStream, conversation.MessagePosted{Author: "a", Text: event.Seal(text)})
		if err != nil {
			t.Fatal(err)
		}
		read := stored(t, sealed)
		if data, _ := json.Marshal(sealed); len(text) > 8 && bytes.Contains(data, []byte(text)) {
			t.Fatal("the stored form holds the text")
		}
		opened, err := s.Open(fuzzStream.ID, read)
		if err != nil || opened.(conversation.MessagePosted).Text.Text() != text {
			t.Fatalf("%q came back as %q, %v", text, opened.(conversation.MessagePosted).Text.Text(), err)
		}
		if _, err := s.Open(event.ID{15: 9}, read); err == nil {
			t.Fatal("it opens in another stream")
		}
		box, _ := read.(conversation.MessagePosted).Text.Box()
		if _, err := s.Open(fuzzStream.ID, stored(t, conversation.Opened{Title: event.Sealed{}.WithBox(box)})); err == nil {
			t.Fatal("it opens in another event and field")
		}
	})
}

// FuzzOpen: whatever stands in the log in place of a sealed field, opening it never panics, and succeeds
// for exactly what was sealed.
func FuzzOpen(f *testing.F) {
	s := fuzzSealer(f)
	sealed, err := s.Seal(fuzzStream, conversation.MessagePosted{Author: "a", Text: event.Seal("the only text")})
	if err != nil {
		f.Fatal(err)
	}
	genuine, _ := sealed.(conversation.MessagePosted).Text.Box()
	data, err := json.Marshal(sealed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"text":{"key":"00000000-0000-0000-0000-000000000007","size":1,"data":"AA=="}}`))
	f.Add([]byte(`{"text":{"key":"00000000-0000-0000-0000-000000000007","size":1,"blob":"../../etc/passwd"}}`))
	f.Add([]byte(`{"text":{"key":"00000000-0000-0000-0000-000000000007","size":1,"blob":"` + strings.Repeat("0", 64) + `"}}`))
	f.Add([]byte(`{"text":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := catalog.Registry().Decode("conversation.message_posted", 1, data)
		if err != nil {
			return
		}
		opened, err := s.Open(fuzzStream.ID, read)
		if err != nil {
			return
		}
		text := opened.(conversation.MessagePosted).Text
		box, has := text.Box()
		if has && (!bytes.Equal(box.Data, genuine.Data) || box.Size != genuine.Size || text.Text() != "the only text") {
			t.Fatalf("a forged box opened as %q", text.Text())
		}
	})
}

// FuzzEvent: any JSON of any kind is decoded or refused, folds without a panic, and what was accepted is written
// and read again as the same.
func FuzzEvent(f *testing.F) {
	registry := catalog.Registry()
	var kinds []event.Definition
	for _, a := range registry.Aggregates() {
		kinds = append(kinds, a.Events...)
	}
	for i := range kinds {
		f.Add(uint8(i), int16(1), []byte(`{}`))
		f.Add(uint8(i), int16(2), []byte(`{"epoch":-1,"step":9223372036854775807,"calls":[{}],"tools":null,"text":{"key":"00000000-0000-0000-0000-000000000007","size":0,"data":"AA=="}}`))
	}
	f.Fuzz(func(t *testing.T, index uint8, schema int16, data []byte) {
		kind := kinds[int(index)%len(kinds)].Kind
		e, err := registry.Decode(kind, schema, data)
		if err != nil {
			return
		}
		a, _ := registry.Aggregate(event.StreamKind(kind))
		a.Evolve(a.Evolve(a.Initial(), e), e)
		again, err := json.Marshal(e)
		if err != nil {
			return // raw JSON that is none is refused at writing
		}
		twice, err := registry.Decode(kind, 1, again)
		if err != nil {
			t.Fatalf("%s was written as %s and is refused: %v", data, again, err)
		}
		if third, err := json.Marshal(twice); err != nil || !bytes.Equal(third, again) {
			t.Fatalf("%s is read and written as %s, %v", again, third, err)
		}
	})
}

// FuzzStorable: what the log's rule for text lets through, PostgreSQL takes, in events and in projections.
func FuzzStorable(f *testing.F) {
	for _, seed := range []string{`{"a":"\u0000"}`, `{"a":"\\u0000"}`, `{"a":"\ud800"}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ude00\ud83d"}`, `{"a":"\\\u0000"}`, `"\ud83dx"`, "\"\xff\"", `["\u00"]`, `{"\ud800":1}`} {
		f.Add([]byte(seed))
	}
	base := dbtest.New(f)
	conn := base.Conn(f, dbtest.Server)
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) || len(data) > 4096 {
			return
		}
		refused := db.Storable(run.SandboxPrepared{Report: data})
		_, err := conn.Exec(t.Context(), "SELECT $1::text::json, $1::text::jsonb", string(data))
		if refused == nil && err != nil && !strings.Contains(err.Error(), "22003") && !strings.Contains(err.Error(), "22023") { // numbers out of range
			t.Fatalf("%q passes, and PostgreSQL refuses it: %v", data, err)
		}
		if refused != nil && err == nil && utf8.Valid(data) {
			t.Fatalf("%q is refused (%v), and PostgreSQL takes it", data, refused)
		}
	})
}
