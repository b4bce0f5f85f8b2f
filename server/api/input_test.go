package api_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/db/dbtest"
)

// bad is one request that is wrong, or may be.
type bad struct {
	name   string
	path   string
	body   any
	header []string
	must   bool // it must be refused
}

// TestBadInput sends every route what its schema, and what the wire, can get wrong. The answer is never a 5xx and
// always one that the document lists; a refusal is a problem and leaves the log as it was.
func TestBadInput(t *testing.T) {
	w := newWorld(t, open)
	n := 0
	for _, op := range w.operations(t) {
		at := w.target(t, op, w.team.Account)
		all := append(badPaths(t, op, at), badQueries(t, op, at)...)
		if op.RequestBody != nil {
			all = append(all, badBodies(t, op, at)...)
			all = append(all, badWire(t, op, at)...)
		}
		if slices.ContainsFunc(op.Parameters, func(p parameter) bool { return p.Name == "Idempotency-Key" }) {
			all = append(all, badKeys(t, op, at)...)
		}
		for _, b := range all {
			n++
			if b.path == "" {
				b.path = at.path(op)
			}
			p, _ := w.session(t, w.team.Account, time.Hour)
			before := w.events(t)
			got := p.do(op.Method, b.path, b.body, b.header...)
			if problem := judge(op, b, got, w.events(t)-before); problem != "" {
				t.Errorf("%s: %s: %s: %d %.300s", op.OperationID, b.name, problem, got.status, got.body)
			}
		}
	}
	if log := w.logged.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the server logged errors: %.2000s", log)
	}
	t.Logf("%d requests", n)
}

func judge(op *operation, b bad, got *heard, appended int64) string {
	_, documented := op.Responses[fmt.Sprint(got.status)]
	switch {
	case got.status >= 500:
		return "a failure of the server"
	case !documented && b.path != "" && (got.status == 301 || got.status == 307 || strings.Contains(string(got.body), "route_not_found")):
		return "" // the path names another place
	case !documented:
		return "the document does not list this answer"
	case got.status < 400 && b.must:
		return "it was taken"
	case got.status >= 400 && appended != 0:
		return fmt.Sprintf("it was refused and left %d events", appended)
	case got.status >= 400 && got.header.Get("Content-Type") != "application/problem+json":
		return "it is no problem document"
	}
	return ""
}

func badPaths(t *testing.T, op *operation, at target) []bad {
	var all []bad
	for _, p := range op.Parameters {
		if p.In != "path" {
			continue
		}
		for _, value := range []string{
			"x", "00000000-0000-0000-0000-000000000000", "urn:uuid:" + at.space.String(), "%7B" + at.space.String() + "%7D", "%00", "%ff",
			strings.Repeat("a", 2000), strings.ReplaceAll(at.space.String(), "-", ""), "..%2f..", "%F0%9F%92%A9", "'%20OR%201=1--",
		} {
			path := at.path(&operation{Path: strings.ReplaceAll(op.Path, "{"+p.Name+"}", "HERE")})
			all = append(all, bad{name: "path " + p.Name + " " + value[:min(len(value), 40)], path: strings.ReplaceAll(path, "HERE", value), body: goodBody(t, op, at), must: true})
		}
	}
	return all
}

// goodBody is the valid one, nil where there is none.
func goodBody(t *testing.T, op *operation, at target) any {
	switch {
	case op.RequestBody == nil:
		return nil
	case op.OperationID == "file-upload":
		return form{{"a/" + dbtest.NewID().String(), "text"}, {dbtest.NewID().String(), ""}}
	}
	return at.body(t, op)
}

func badQueries(t *testing.T, op *operation, at target) []bad {
	// A parameter that the route does not have is refused too.
	values := map[string][]string{
		"":         {"unknown=1", "as_of=3", "token=abc", "=", "%00=1", "%ff", "session_id=x"},
		"limit":    {"limit=0", "limit=-1", "limit=abc", "limit=1e9", "limit=99999999999999999999", "limit=1&limit=2", "limit=%00"},
		"cursor":   {"cursor=x", "cursor=%00", "cursor=" + strings.Repeat("A", 500), "cursor=c3BhY2V8MXwyfDM", "cursor=fHx8"},
		"after":    {"after=-1", "after=9223372036854775807", "after=9223372036854775808", "after=x", "after=1.5"},
		"q":        {"q=%00", "q=%ff", "q=" + strings.Repeat("a", 401)},
		"agent_id": {"agent_id=x", "agent_id=%00", "agent_id=1"},
		"state":    {"state=bogus", "state=%00", "state=queued,bogus", "state=,", "state=" + strings.Repeat("queued,", 9) + "queued"},
		"kinds":    {"kinds=%00", "kinds=no.such", "kinds=,", "kinds=" + strings.Repeat("run.queued,", 60) + "run.queued"},
	}
	var all []bad
	for _, queries := range values {
		for _, q := range queries {
			b := bad{name: "query " + q[:min(len(q), 40)], path: at.path(op) + "?" + q, must: true}
			if op.Method != "GET" {
				b.body = goodBody(t, op, at)
			}
			all = append(all, b)
		}
	}
	return all
}

// values that are wrong for some type, or at the edge of what is right.
var values = []any{
	nil, true, 0, 1, -1, 1.5, 1e300, 9223372036854775807, "", " ", "x", "00000000-0000-0000-0000-000000000000", "a\u0000b", "line\nline\x1b[2J", "\ufffd\u202e",
	strings.Repeat("💥", 300), strings.Repeat("a", 70_000),
	[]any{},
	[]any{nil},
	[]any{1, "x"},
	[]any{"shell", "shell"},
	[]any{"bogus"},
	map[string]any{},
	map[string]any{"x": 1},
	map[string]any{"model_calls": 0},
	map[string]any{"model_calls": "x"},
}

func badBodies(t *testing.T, op *operation, at target) []bad {
	if op.OperationID == "file-upload" {
		return badForms()
	}
	s := op.document.resolved(op.RequestBody.Content["application/json"].Schema)
	if len(s.Properties) == 0 {
		t.Fatalf("%s: the document has no properties of its body: %+v", op.OperationID, s)
	}
	var all []bad
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := op.document.resolved(s.Properties[name])
		if name == "$schema" {
			t.Fatalf("%s has $schema", op.OperationID)
		}
		change := func(what string, value any, must bool) {
			body := at.body(t, op)
			body[name] = value
			all = append(all, bad{name: name + " " + what, body: body, must: must})
		}
		if slices.Contains(s.Required, name) {
			body := at.body(t, op)
			delete(body, name)
			all = append(all, bad{name: name + " missing", body: body, must: true})
		}
		for _, value := range values {
			// Null for what may be left out is the same as leaving it out.
			must := !fits(property, value) && (value != nil || slices.Contains(s.Required, name))
			change(fmt.Sprintf("%.40v", value), value, must)
		}
		if property.MaxLength != nil {
			change("too long", strings.Repeat("a", *property.MaxLength+1), true)
		}
		if property.Enum != nil {
			change("not in the list", "bogus", true)
		}
	}
	extra := at.body(t, op)
	extra["extra"] = 1
	return append(all, bad{name: "extra property", body: extra, must: true})
}

// fits reports whether a value has a type that the schema allows.
func fits(s schema, value any) bool {
	switch value.(type) {
	case nil:
		return s.is("null")
	case bool:
		return s.is("boolean")
	case string:
		return s.is("string")
	case []any:
		return s.is("array")
	case map[string]any:
		return s.is("object") || s.Properties != nil
	}
	return s.is("integer") || s.is("number")
}

func badWire(t *testing.T, op *operation, at target) []bad {
	all := []bad{}
	for name, body := range map[string]string{
		"nothing": "", "blank": " ", "half": "{", "array": "[]", "null": "null", "number": "1", "text": `"x"`, "empty object": "{}", "not JSON": "a=b", "two": "{}{}",
		"deep": strings.Repeat("[", 20_000), "deep objects": strings.Repeat(`{"a":`, 20_000), "NUL": "\x00", "BOM": "\xef\xbb\xbf{}", "UTF-16": "\xff\xfe{\x00}\x00",
		"huge number": `{"name":1e999999}`, "long": `{"x":"` + strings.Repeat("a", 9<<20) + `"}`, "__proto__": `{"__proto__":{"a":1}}`,
	} {
		// Setting a password needs a value; an agent's revision may be empty, and to retry needs nothing at all.
		may := name == "empty object" && (op.OperationID == "agent-revise" || op.OperationID == "run-retry") || name == "nothing" && op.OperationID == "run-retry"
		all = append(all, bad{name: "body " + name, body: body, must: !may})
	}
	for _, kind := range []string{"text/plain", "application/xml", "multipart/form-data", "application/x-www-form-urlencoded", "application/json; charset=utf-16; x=", "garbage", "application/cbor"} {
		all = append(all, bad{name: "as " + kind, body: goodBody(t, op, at), header: []string{"Content-Type", kind}})
	}
	// Text that is not UTF-8, and half of a surrogate pair, inside of good JSON.
	for _, text := range []string{"\xff\xfe", `\ud800`, `\udc00\ud800`} {
		json, _ := goodBody(t, op, at).(map[string]any)
		for name, value := range json {
			if _, ok := value.(string); ok {
				raw := fmt.Sprintf(`{%q:"%s"`, name, text)
				for other, v := range at.body(t, op) {
					if s, ok := v.(string); ok && other != name {
						raw += fmt.Sprintf(`,%q:%q`, other, s)
					}
				}
				all = append(all, bad{name: fmt.Sprintf("%s %q", name, text), body: []byte(raw + "}")})
			}
		}
	}
	return all
}

func badKeys(t *testing.T, op *operation, at target) []bad {
	var all []bad
	for _, key := range []string{strings.Repeat("k", 201), "two words", "\x80\xff", "ключ"} {
		all = append(all, bad{name: fmt.Sprintf("key %.20q", key), body: goodBody(t, op, at), header: []string{"Idempotency-Key", key}, must: true})
	}
	return all
}

// TestBadTransfers are requests that no client library makes.
func TestBadTransfers(t *testing.T) {
	w := newWorld(t, open)
	p, _ := w.session(t, w.team.Account, time.Hour)
	for name, raw := range map[string]string{
		"broken chunks": "POST /api/v1/spaces HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: " + p.cookie + "\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nnonsense\r\n",
		"no such route": "GET /api/v1/nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"no method":     "BREW /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
	} {
		if answer := w.raw(t, raw); !bytes.Contains(answer, []byte(`"code":"`)) || bytes.Contains(answer, []byte("HTTP/1.1 5")) {
			t.Errorf("%s: %.500s", name, answer)
		}
	}
	s := w.stranger(t)
	s.do("GET", "/nothing", nil).problem(http.StatusNotFound, "route_not_found")
	if h := s.do("DELETE", "/spaces", nil); h.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow is %q", h.header.Get("Allow"))
	} else {
		h.problem(http.StatusMethodNotAllowed, "method_not_allowed")
	}
	s.do("POST", "//root/healthz", nil).problem(http.StatusMethodNotAllowed, "method_not_allowed")
	s.do("POST", "/login", `{"email":"`+strings.Repeat("a", 20_000)+`"}`).problem(http.StatusRequestEntityTooLarge, "request_too_large")
}
