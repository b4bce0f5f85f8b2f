package catalog_test

import (
	"strings"
	"testing"

	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/file"
	"cairn/domain/run"
	"cairn/domain/space"
)

// upload is a file of the first space; its path's keyed hash is by the path.
func upload(path, digest string) file.Upload {
	u := file.Upload{Path: path, MAC: mac("path "+path, 0), Digest: strings.Repeat(digest, 64), Content: event.Content{Key: id("space", 0), Blob: strings.Repeat("b", 64), Size: 3}, MediaType: "text/plain"}
	for _, folder := range file.Parents(path) {
		u.Parents = append(u.Parents, mac("path "+folder, 0))
	}
	return u
}

func TestPathsOfFiles(t *testing.T) {
	d := newDesk(t)
	for _, path := range []string{
		"", ".", "..", "/a", "a/", "a//b", "./a", "a/./b", "../a", "a/../b", "a/..", "a\x00b", "a\nb", "a\x1bb", "\xff", `a\b`, `..\a`,
		strings.Repeat("a", 256), strings.Repeat("a/", 32) + "a", strings.Repeat("abcdefgh/", 120) + "a", "a\u0085b",
	} {
		d.refused("invalid_field", owner, file.Store{Space: id("space", 0), Files: []file.Upload{upload(path, "0")}})
	}
	for _, path := range []string{"a", "ä/ö.txt", "a b/c d", ".git/config", "..a", "a..", strings.Repeat("a", 255), strings.Repeat("d/", 31) + "f", "-rf", "~", "$(x)"} {
		d.w.must(owner, file.Store{Space: id("space", 0), Files: []file.Upload{upload(path, "0")}})
	}
}

func TestFilesAreStoredTogetherOrNotAtAll(t *testing.T) {
	d := newDesk(t)
	s := id("space", 0)
	store := func(files ...file.Upload) file.Store { return file.Store{Space: s, Files: files} }
	d.refused("invalid_field", owner, store(upload("a", "0"), upload("a", "0")))
	d.refused("file_clash", owner, store(upload("a", "0"), upload("a/b", "0")))
	d.refused("invalid_field", owner, store(upload("good", "0"), upload("../bad", "0")))
	d.refused("invalid_field", owner, store(make([]file.Upload, file.MaxFiles+1)...))
	foreign := upload("x", "0")
	foreign.Content.Key = id("space", 1)
	d.refused("invalid_field", owner, store(foreign))
	large := upload("x", "0")
	large.Content.Size = file.MaxBytes + 1
	d.refused("invalid_field", owner, store(large))
	d.refused("role_too_low", event.AccountActor(id("account", 2)), store(upload("a", "0"))) // an auditor
	d.refused("space_not_found", event.AccountActor(id("account", 1)), store(upload("a", "0")))
	d.refused("worker_denied", "worker/a", store(upload("a", "0")))

	d.w.must(owner, store(upload("a", "0"), upload("d/b", "1")))
	d.refused("file_clash", owner, store(upload("fine", "0"), upload("a/b", "0")))
	if _, there := d.w.streams[file.Stream(s, mac("path fine", 0)).ID]; there {
		t.Error("a refused upload left a file")
	}
	stream := file.Stream(s, mac("path a", 0))
	d.w.must(owner, store(upload("a", "0")))
	d.w.must(owner, store(upload("a", "2")))
	if n := len(d.w.streams[stream.ID].events); n != 2 {
		t.Errorf("%d versions, want 2: the same content again is none", n)
	}
	remove := file.Remove{Space: s, File: stream.ID}
	d.refused("role_too_low", event.AccountActor(id("account", 2)), remove)
	d.refused("file_not_found", owner, file.Remove{Space: s, File: id("file", 0)})
	d.w.must(owner, remove)
	d.refused("file_not_found", owner, remove)
	d.w.must(owner, store(upload("a/b", "0"))) // what was a file may be a folder now
	d.w.must(owner, space.Erase{Space: s, Claim: d.w.state(space.Stream(s)).(space.State).Claim})
	d.refused("space_erased", owner, store(upload("z", "0")))
}

func TestManifests(t *testing.T) {
	s := id("space", 0)
	entry := func(path string) file.Entry {
		return file.Entry{Path: path, Digest: strings.Repeat("0", 64), Content: event.Content{Key: s, Blob: strings.Repeat("b", 64), Size: 1}}
	}
	one, err := file.Manifest{Files: []file.Entry{entry("b/c"), entry("a")}}.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := file.Manifest{Files: []file.Entry{entry("a"), entry("b/c")}}.Encode(s)
	if string(one) != string(two) {
		t.Errorf("the order of the files makes another manifest")
	}
	if m, err := file.DecodeManifest(one, s); err != nil || len(m.Files) != 2 || m.Bytes() != 2 {
		t.Errorf("%+v %v", m, err)
	}
	for _, paths := range [][]string{{"a", "a"}, {"a", "a/b"}, {"../a"}, {"/etc/passwd"}} {
		m := file.Manifest{}
		for _, path := range paths {
			m.Files = append(m.Files, entry(path))
		}
		if _, err := m.Encode(s); err == nil {
			t.Errorf("%v was taken", paths)
		}
	}
	if _, err := file.DecodeManifest(one, id("space", 1)); err == nil {
		t.Error("a manifest of another space was taken")
	}
	if _, err := file.DecodeManifest([]byte(`{"format":2}`), s); err == nil {
		t.Error("a manifest of the future was taken")
	}
}

// TestSourceIsSealedAnew: the folder's name is text of people, and a run's copy of it is sealed in its own event.
func TestSourceIsSealedAnew(t *testing.T) {
	d := newDesk(t)
	s := run.Source{Kind: run.SourceFiles, Files: run.Files{Folder: event.Seal("docs"), Manifest: event.Content{Key: id("space", 0), Blob: strings.Repeat("b", 64), Size: 9}, Count: 1, Bytes: 3}}
	d.w.must(owner, conversation.Open{Conversation: id("conversation", 5), Space: id("space", 0), Agent: id("agent", 0), Title: "T", Source: s})
	message := d.message(5)
	message.Conversation = id("conversation", 5)
	d.w.must(owner, message)
	state := d.w.state(run.Stream(id("run", 5), id("space", 0), id("conversation", 5))).(run.State)
	if got := state.Source.Files; got.Folder.Text() != "docs" || got.Manifest != s.Files.Manifest {
		t.Errorf("the run has %+v", got)
	}
}
