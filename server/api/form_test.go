package api_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"cairn/db/dbtest"
	"cairn/domain/event"
	"cairn/server/api"
)

// form is an upload: paths and contents.
type form [][2]string

func (f form) encode(t testing.TB) (io.Reader, string) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, part := range f {
		escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(part[0])
		header := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename="%s"`, escaped)}, "Content-Type": {"text/html"}}
		to, err := w.CreatePart(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(to, part[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &body, w.FormDataContentType()
}

// stored uploads as the team's owner.
func (w *world) stored(t *testing.T, f form) []event.ID {
	t.Helper()
	p, _ := w.session(t, w.team.Account, time.Hour)
	var ids []event.ID
	for _, u := range into[api.FilesUploaded](p.do("POST", "/spaces/"+w.team.Space.String()+"/files", f).want(http.StatusCreated)).Files {
		ids = append(ids, u.ID)
	}
	return ids
}

func badForms() []bad {
	fresh := func() string { return dbtest.NewID().String() }
	same := fresh()
	all := []bad{}
	for name, f := range map[string]form{
		"nothing": {}, "no path": {{"", "x"}}, "parent": {{"../x", "x"}}, "absolute": {{"/x", "x"}}, "inner parent": {{"a/../../x", "x"}}, "dot": {{".", "x"}},
		"backslash": {{`a\b`, "x"}}, "control": {{"a\x01b", "x"}}, "NUL": {{"a\x00b", "x"}}, "not UTF-8": {{"\xff\xfe", "x"}}, "long": {{strings.Repeat("a", 300), "x"}},
		"deep": {{strings.Repeat("a/", 40) + "a", "x"}}, "twice": {{same, "1"}, {same, "1"}}, "clash": {{same, "1"}, {same + "/b", "1"}}, "second bad": {{fresh(), "1"}, {"..", "1"}},
	} {
		all = append(all, bad{name: "form " + name, body: f, must: true})
	}
	boundary := []string{"Content-Type", "multipart/form-data; boundary=B"}
	part := "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"cut\"\r\n\r\nhello"
	for name, raw := range map[string]string{
		"empty": "", "no end": part, "no end of the part": part + "\r\n--", "other name": strings.ReplaceAll(part, `"file"`, `"x"`) + "\r\n--B--\r\n",
		"no filename": "--B\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nhello\r\n--B--\r\n", "no disposition": "--B\r\n\r\nhello\r\n--B--\r\n",
		"two filenames": strings.ReplaceAll(part, `"cut"`, `"cut"; filename="b"`) + "\r\n--B--\r\n",
	} {
		all = append(all, bad{name: "wire " + name, body: []byte(raw), header: boundary, must: true})
	}
	return all
}
