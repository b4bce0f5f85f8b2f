package worker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/event"
	"cairn/domain/space"
	"cairn/server"
	"cairn/server/api"
	"cairn/server/auth"
)

// browser speaks REST as the team's person.
type browser struct {
	*bench
	url, cookie string
}

func (b *bench) browser(roots ...string) *browser {
	b.t.Helper()
	many := auth.Limits{Account: 1e6, Address: 1e6, Burst: 1e6}
	s, err := server.New(b.t.Context(), server.Options{DB: b.d, Limits: many, Roots: roots, Version: "test", Log: slog.New(slog.NewTextHandler(&b.log, nil))})
	if err != nil {
		b.t.Fatal(err)
	}
	listener := httptest.NewServer(s.Handler())
	b.t.Cleanup(listener.Close)
	token := dbtest.NewID().String()
	hash := sha256.Sum256([]byte(token))
	if err := b.d.AddSession(b.t.Context(), db.Session{ID: dbtest.NewID(), Account: b.team.Account, Hash: hash[:], Method: "code"}, time.Hour, 10); err != nil {
		b.t.Fatal(err)
	}
	return &browser{bench: b, url: listener.URL + api.Prefix, cookie: "cairn_session=" + token}
}

func (b *browser) send(method, path, mediaType string, body io.Reader) (*http.Response, []byte) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, b.url+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Cookie", b.cookie)
	r.Header.Set("Content-Type", mediaType)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return response, raw
}

// json sends and reads JSON, and wants a status.
func (b *browser) json(method, path string, body, into any, status int) {
	b.t.Helper()
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	response, raw := b.send(method, path, "application/json", reader)
	if response.StatusCode != status {
		b.t.Fatalf("%s %s answered %d, want %d: %s", method, path, response.StatusCode, status, raw)
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			b.t.Fatalf("%s %s: %v: %s", method, path, err, raw)
		}
	}
}

func (b *browser) upload(files map[string]string) api.FilesUploaded {
	b.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for path, text := range files {
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename="%s"`, path)}})
		if err == nil {
			_, err = io.WriteString(part, text)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	w.Close()
	response, raw := b.send("POST", "/spaces/"+b.team.Space.String()+"/files", w.FormDataContentType(), &body)
	var out api.FilesUploaded
	if err := json.Unmarshal(raw, &out); err != nil || response.StatusCode != http.StatusCreated {
		b.t.Fatalf("upload: %d %s %v", response.StatusCode, raw, err)
	}
	return out
}

// asks posts a message and waits for the end of its run.
func (b *browser) asks(conversation event.ID, lines ...string) event.ID {
	b.t.Helper()
	var posted struct {
		Run event.ID `json:"run_id"`
	}
	b.json("POST", "/conversations/"+conversation.String()+"/messages", map[string]any{"text": strings.Join(lines, "\n")}, &posted, http.StatusAccepted)
	var shown api.Run
	b.until(60*time.Second, func() bool {
		b.json("GET", "/runs/"+posted.Run.String(), nil, &shown, http.StatusOK)
		return shown.EndedAt != nil
	}, "the run to end")
	if shown.State != "succeeded" || shown.Source.Manifest == nil {
		b.t.Fatalf("run %+v", shown)
	}
	return posted.Run
}

// TestFilesBecomeChanges is the whole way: files are uploaded, a run begins with them, changes them, and what it changed
// is listed with its diffs; what is uploaded or removed later does not reach the conversation.
func TestFilesBecomeChanges(t *testing.T) {
	t.Parallel()
	b := newBench(t).browser("code")
	b.work("one")
	here := "/spaces/" + b.team.Space.String()
	uploaded := b.upload(map[string]string{"src/a.go": "package a\n", "src/deep/b.txt": "one\ntwo\n", "src/gone": "x\n", "other": "not in src\n"})

	var sources struct{ Items []api.Source }
	b.json("GET", here+"/sources", nil, &sources, http.StatusOK)
	var offered []string
	for _, s := range sources.Items {
		text := s.Kind
		if s.Folder != nil {
			text += fmt.Sprintf(" %q %d %d", *s.Folder, *s.Files, *s.Bytes)
		}
		if s.Root != nil {
			text += " " + *s.Root
		}
		offered = append(offered, text)
	}
	if want := []string{"none", `files "" 4 31`, `files "src" 3 20`, "folder code"}; !slices.Equal(offered, want) {
		t.Errorf("sources %q, want %q", offered, want)
	}

	var opened api.ConversationOpened
	b.json("POST", here+"/conversations", map[string]any{"agent_id": b.team.Agent, "title": "T", "source": map[string]any{"kind": "files", "folder": "src"}}, &opened, http.StatusCreated)
	b.upload(map[string]string{"src/a.go": "package later\n", "src/new": "later\n"})
	for _, f := range uploaded.Files {
		if f.Path == "src/gone" {
			b.json("DELETE", "/files/"+f.ID.String(), nil, nil, http.StatusNoContent)
		}
	}
	run := b.asks(opened.Conversation, "$ cat a.go gone; find . -type f | sort", "$ echo three >> deep/b.txt; rm gone; printf 'n\\n' > added")
	var events api.Events
	b.json("GET", "/runs/"+run.String()+"/events?limit=500", nil, &events, http.StatusOK)
	if raw, _ := json.Marshal(events); !strings.Contains(string(raw), `package a\nx\n./a.go\n./deep/b.txt\n./gone\n`) {
		t.Errorf("the run saw other files: %s", raw)
	}

	at := "/runs/" + run.String() + "/changes"
	var changes api.Changes
	b.json("GET", at+"?limit=2", nil, &changes, http.StatusOK)
	if changes.State != "recorded" || changes.Totals.Files != 3 || len(changes.Items) != 2 || changes.NextCursor == nil {
		t.Fatalf("changes %+v", changes)
	}
	all, next := changes.Items, *changes.NextCursor
	changes = api.Changes{}
	b.json("GET", at+"?limit=2&cursor="+next, nil, &changes, http.StatusOK)
	all = append(all, changes.Items...)
	var said []string
	for _, c := range all {
		said = append(said, fmt.Sprintf("%s %s +%d-%d %v", c.Change, c.Path, *c.LinesAdded, *c.LinesRemoved, c.Diff))
	}
	if want := []string{"added added +1-0 true", "modified deep/b.txt +1-0 true", "deleted gone +0-1 true"}; !slices.Equal(said, want) || changes.NextCursor != nil {
		t.Errorf("changes %q, want %q", said, want)
	}
	for path, want := range map[string]string{
		"deep/b.txt": "--- a/deep/b.txt\n+++ b/deep/b.txt\n@@ -1,2 +1,3 @@\n one\n two\n+three\n", "gone": "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
	} {
		var diff api.Diff
		if b.json("GET", at+"/diff?path="+path, nil, &diff, http.StatusOK); diff.Diff != want || diff.Truncated {
			t.Errorf("%s: %+v, want %q", path, diff, want)
		}
	}
	b.json("GET", at+"/diff?path=a.go", nil, nil, http.StatusNotFound)

	// The next turn goes on from there, with the same list; a new conversation has the files of now.
	b.asks(opened.Conversation, "$ test \"$(cat a.go)\" = 'package a' && test -f added && ! test -e gone && ! test -e new")
	b.json("POST", here+"/conversations", map[string]any{"agent_id": b.team.Agent, "title": "T", "source": map[string]any{"kind": "files", "folder": "src"}}, &opened, http.StatusCreated)
	b.asks(opened.Conversation, "$ test \"$(cat a.go)\" = 'package later' && test -f new && ! test -e gone")
	var messages struct{ Items []api.Message }
	b.json("GET", "/conversations/"+opened.Conversation.String()+"/messages", nil, &messages, http.StatusOK)
	if answer := *messages.Items[0].Answer; !strings.Contains(answer, "exit code: 0") && !strings.Contains(answer, "exit code 0") {
		t.Errorf("a new conversation: %s", answer)
	}

	// Erasure leaves no path behind, and nothing that opens.
	dbtest.Must(t, b.d, b.team.Actor(), space.Erase{Space: b.team.Space, Claim: b.spaceClaim()})
	var left int
	err := b.base.Conn(t, "").QueryRow(t.Context(), `SELECT (SELECT count(*) FROM view.file WHERE path IS NOT NULL OR sha256 IS NOT NULL)
		+ (SELECT count(*) FROM view.run WHERE source_folder IS NOT NULL) + (SELECT count(*) FROM view.conversation WHERE source_folder IS NOT NULL)`).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d rows still hold text: %v", left, err)
	}
	b.json("GET", "/files/"+uploaded.Files[0].ID.String(), nil, nil, http.StatusNotFound)
	b.json("GET", at, nil, nil, http.StatusNotFound)
}
