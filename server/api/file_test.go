package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/domain/file"
	"cairn/domain/space"
	"cairn/server/api"
)

// blobs counts the files of the blob store, half-written ones too.
func (w *world) blobs(t *testing.T) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(w.database.BlobDir, func(_ string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wantBlobs waits until there are as many contents: the server may still be at an upload that was broken off.
func (w *world) wantBlobs(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); w.blobs(t) != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there are %d contents, want %d", w.blobs(t), want)
		}
	}
}

func (w *world) filesAt() string { return "/spaces/" + w.team.Space.String() + "/files" }

func TestFilesComeBack(t *testing.T) {
	w := newWorld(t, open)
	p := w.owner(t)
	html := "<script>alert(1)</script>"
	got := into[api.FilesUploaded](p.do("POST", w.filesAt(), form{{"page.html", html}, {`odd "näme"/x y`, ""}, {"src/main.go", "package main\n"}, {"srcs", "no folder"}}).want(http.StatusCreated))
	if len(got.Files) != 4 || got.Files[0].Path != "page.html" || got.Files[0].Version != 1 || got.Files[1].Path != `odd "näme"/x y` || got.Files[1].Size != 0 {
		t.Fatalf("%+v", got)
	}
	at := "/files/" + got.Files[0].ID.String()
	shown := into[api.File](p.do("GET", at, nil).want(http.StatusOK))
	if *shown.Path != "page.html" || shown.MediaType != "text/html" || *shown.SHA256 != got.Files[0].SHA256 || shown.Size != int64(len(html)) || shown.StoredBy != w.team.Actor() {
		t.Errorf("%+v", shown)
	}
	content := p.do("GET", at+"/content", nil).want(http.StatusOK)
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Content-Disposition": "attachment; filename=page.html", "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
		"ETag": `"` + got.Files[0].SHA256 + `"`, "Content-Length": fmt.Sprint(len(html)), "Cache-Control": "private, no-cache",
	} {
		if content.header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, content.header.Get(name), want)
		}
	}
	if string(content.body) != html {
		t.Errorf("content %q", content.body)
	}
	p.do("GET", at+"/content", nil, "If-None-Match", content.header.Get("ETag")).want(http.StatusNotModified)
	if odd := p.do("GET", "/files/"+got.Files[1].ID.String()+"/content", nil).want(http.StatusOK); len(odd.body) != 0 || odd.header.Get("Content-Disposition") != `attachment; filename="x y"` {
		t.Errorf("%q %v", odd.body, odd.header)
	}
	for query, want := range map[string]int{"": 4, "?folder=src": 1, "?folder=srcs": 0, "?folder=sr": 0, "?q=MAIN": 1, "?q=%25": 0, "?q=s&folder=src": 1} {
		if n := len(into[api.List[api.File]](p.do("GET", w.filesAt()+query, nil).want(http.StatusOK)).Items); n != want {
			t.Errorf("%s: %d files, want %d", query, n, want)
		}
	}
	for _, query := range []string{"?folder=../x", "?folder=/x", "?folder=a/", "?q=%00", "?q=%ff"} {
		p.do("GET", w.filesAt()+query, nil).problem(http.StatusUnprocessableEntity, "")
	}

	// The same again is no new version, another content is.
	again := into[api.FilesUploaded](p.do("POST", w.filesAt(), form{{"page.html", html}, {"srcs", "other"}}).want(http.StatusCreated))
	if again.Files[0].Version != 1 || again.Files[1].Version != 2 {
		t.Errorf("%+v", again)
	}
	p.do("DELETE", at, nil).want(http.StatusNoContent)
	p.do("DELETE", at, nil).problem(http.StatusNotFound, "file_not_found")
	p.do("GET", at+"/content", nil).problem(http.StatusNotFound, "file_not_found")
	if v := into[api.FilesUploaded](p.do("POST", w.filesAt(), form{{"page.html", html}}).want(http.StatusCreated)).Files[0].Version; v != 3 {
		t.Errorf("stored again: version %d", v)
	}
	for _, f := range []form{{{"page.html/x", ""}}, {{"src", ""}}, {{"fine", ""}, {"src", ""}}} {
		p.do("POST", w.filesAt(), f).problem(http.StatusConflict, "file_clash")
	}
	sameAtAnySize(t, p, w.filesAt(), 4, func(f api.File) string { return f.ID.String() }, func(f api.File) time.Time { return f.StoredAt })
}

// TestUploadIsAllOrNothing: whatever goes wrong, no event and no content is left, and the key is free again.
func TestUploadIsAllOrNothing(t *testing.T) {
	w := newWorld(t, open)
	p := w.owner(t)
	auditor, _ := w.session(t, w.joined(t, space.Auditor), time.Hour)
	before, blobs := w.events(t), w.blobs(t)
	cut := "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nwhole\r\n--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b\"\r\n\r\nhal"
	p.do("POST", w.filesAt(), []byte(cut), "Content-Type", "multipart/form-data; boundary=B").problem(http.StatusBadRequest, "malformed_request")
	p.do("POST", w.filesAt(), form{{"a", "x"}, {"b/../../c", "y"}}, "Idempotency-Key", "one").problem(http.StatusUnprocessableEntity, "invalid_field")
	p.do("POST", w.filesAt(), form{{"a", "x"}, {"a", "x"}}).problem(http.StatusUnprocessableEntity, "invalid_field")
	auditor.do("POST", w.filesAt(), form{{"a", "x"}}).problem(http.StatusForbidden, "role_too_low")
	large := strings.Repeat("0123456789abcdef", file.MaxBytes/32+1)
	if got := p.do("POST", w.filesAt(), form{{"a", large}, {"b", large}}).problem(http.StatusRequestEntityTooLarge, "request_too_large"); !strings.Contains(got.Detail, fmt.Sprint(file.MaxBytes)) {
		t.Errorf("%+v", got)
	}
	p.do("POST", w.filesAt(), form{{"a", strings.Repeat("x", 70<<20)}}).problem(http.StatusRequestEntityTooLarge, "request_too_large")
	w.breakOff(t, p, cut)
	if n := w.events(t); n != before {
		t.Errorf("%d events are left", n-before)
	}
	w.wantBlobs(t, blobs)

	first := into[api.FilesUploaded](p.do("POST", w.filesAt(), form{{"a", "x"}}, "Idempotency-Key", "one").want(http.StatusCreated))
	w.wantBlobs(t, blobs+1)
	blobs, before = blobs+1, w.events(t)
	again := into[api.FilesUploaded](p.do("POST", w.filesAt(), form{{"a", "x"}}, "Idempotency-Key", "one").want(http.StatusCreated))
	if again.Files[0] != first.Files[0] || w.events(t) != before {
		t.Errorf("a repetition: %+v, %d events", again, w.events(t)-before)
	}
	w.wantBlobs(t, blobs)
	p.do("POST", w.filesAt(), form{{"a", "y"}}, "Idempotency-Key", "one").problem(http.StatusConflict, "idempotency_key_reused")
	w.wantBlobs(t, blobs)
}

// breakOff sends the beginning of an upload that promises more, and hangs up.
func (w *world) breakOff(t *testing.T, p *person, begin string) {
	t.Helper()
	r, to := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), "POST", w.URL+api.Prefix+w.filesAt(), r)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Cookie", p.cookie)
	request.Header.Set("Content-Type", "multipart/form-data; boundary=B")
	request.ContentLength = 1 << 20
	go func() {
		io.Copy(to, strings.NewReader(begin))
		to.CloseWithError(io.ErrClosedPipe)
	}()
	if response, err := w.Client().Do(request); err == nil {
		response.Body.Close()
	}
}

// TestManyFilesAtOnce is about one append over many streams.
func TestManyFilesAtOnce(t *testing.T) {
	w := newWorld(t, open)
	p := w.owner(t)
	f := make(form, 200)
	for i := range f {
		f[i] = [2]string{fmt.Sprintf("d%02d/e%d/f%d", i%40, i%3, i), fmt.Sprint("content ", i)}
	}
	begin := time.Now()
	got := into[api.FilesUploaded](p.do("POST", w.filesAt(), f).want(http.StatusCreated))
	t.Logf("%d files in %v", len(got.Files), time.Since(begin))
	at := into[api.ConversationOpened](p.do("POST", "/spaces/"+w.team.Space.String()+"/conversations", map[string]any{
		"agent_id": w.team.Agent, "title": "T", "source": map[string]any{"kind": "files"},
	}).want(http.StatusCreated))
	source := into[api.Conversation](p.do("GET", "/conversations/"+at.Conversation.String(), nil).want(http.StatusOK)).Source
	if source.Kind != "files" || *source.Files != 200 || *source.Folder != "" || len(*source.Manifest) != 64 {
		t.Errorf("%+v", source)
	}
}

func TestSources(t *testing.T) {
	w := newWorld(t, open)
	p := w.owner(t)
	w.stored(t, form{{"docs/a", "1"}})
	at := "/spaces/" + w.team.Space.String() + "/conversations"
	before := w.events(t)
	for _, source := range []map[string]any{
		{"kind": "git"},
		{},
		{"kind": "none", "folder": "docs"},
		{"kind": "none", "root": "x"},
		{"kind": "files", "root": "x"},
		{"kind": "files", "folder": "../docs"},
		{"kind": "files", "folder": "doc"},
		{"kind": "files", "folder": "/docs"},
		{"kind": "folder"},
		{"kind": "folder", "root": "unknown"},
		{"kind": "folder", "root": "code", "path": "/etc"},
		{"kind": "folder", "root": "code", "path": "a/../../x"},
		{"kind": "folder", "root": "code", "path": "..", "folder": "x"},
		{"kind": "folder", "root": "code", "path": "a\x00"},
	} {
		p.do("POST", at, map[string]any{"agent_id": w.team.Agent, "title": "T", "source": source}).problem(http.StatusUnprocessableEntity, "")
	}
	if n := w.events(t); n != before {
		t.Errorf("%d events are left", n-before)
	}
	auditor, _ := w.session(t, w.joined(t, space.Auditor), time.Hour)
	blobs := w.blobs(t)
	auditor.do("POST", at, map[string]any{"agent_id": w.team.Agent, "title": "T", "source": map[string]any{"kind": "files"}}).problem(http.StatusForbidden, "role_too_low")
	if w.blobs(t) != blobs {
		t.Error("a refused conversation leaves a list of files")
	}
	opened := into[api.ConversationOpened](p.do("POST", at, map[string]any{"agent_id": w.team.Agent, "title": "T", "source": map[string]any{"kind": "files", "folder": "docs"}}, "Idempotency-Key", "k").want(http.StatusCreated))
	w.stored(t, form{{"docs/b", "2"}})
	again := into[api.ConversationOpened](p.do("POST", at, map[string]any{"agent_id": w.team.Agent, "title": "T", "source": map[string]any{"kind": "files", "folder": "docs"}}, "Idempotency-Key", "k").want(http.StatusCreated))
	source := into[api.Conversation](p.do("GET", "/conversations/"+opened.Conversation.String(), nil).want(http.StatusOK)).Source
	if opened != again || *source.Files != 1 || *source.Folder != "docs" {
		t.Errorf("%v %v %+v", opened, again, source)
	}
	run := w.team.Post(t, w.db, opened.Conversation, "hello").Run
	shown := into[api.Run](p.do("GET", "/runs/"+run.String(), nil).want(http.StatusOK))
	if *shown.Source.Manifest != *source.Manifest || *shown.Source.Folder != "docs" {
		t.Errorf("the run has %+v", shown.Source)
	}
	changes := into[api.Changes](p.do("GET", "/runs/"+run.String()+"/changes", nil).want(http.StatusOK))
	if changes.State != "pending" || changes.Totals != nil || changes.Reason != nil || bytes.Contains(p.do("GET", "/runs/"+run.String()+"/changes", nil).body, []byte(`"items":null`)) {
		t.Errorf("%+v", changes)
	}
	p.do("POST", "/runs/"+run.String()+"/cancel", nil).want(http.StatusOK)
	if changes = into[api.Changes](p.do("GET", "/runs/"+run.String()+"/changes", nil)); changes.State != "unavailable" || *changes.Reason != "no_sandbox" {
		t.Errorf("%+v", changes)
	}
}
