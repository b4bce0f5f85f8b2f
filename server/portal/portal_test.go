package portal_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"cairn/server/portal"
)

// built is a small build, with files that must stay inside.
var built = fstest.MapFS{
	".keep":              {},
	"index.html":         {Data: []byte("<!doctype html>page")},
	"index.html.br":      {Data: []byte("br page")},
	"index.html.gz":      {Data: []byte("gz page")},
	"assets/a-123.js":    {Data: []byte("script")},
	"assets/a-123.js.gz": {Data: []byte("gz script")},
}

func ask(t *testing.T, dist fstest.MapFS, method, path string, header ...string) (wanted bool, answer *httptest.ResponseRecorder) {
	t.Helper()
	p, err := portal.New(dist)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer = httptest.NewRecorder()
	if !p.Wants(r) {
		return false, answer
	}
	p.ServeHTTP(answer, r)
	return true, answer
}

func TestAnswers(t *testing.T) {
	const html, gzip, br = "text/html,*/*;q=0.8", "gzip", "gzip, deflate, br;q=0.9"
	for _, c := range []struct {
		method, path, accept, encoding string
		wanted                         bool
		status                         int
		body, kept                     string
	}{
		{"GET", "/", "*/*", "", true, 200, "<!doctype html>page", "no-store"},
		{"GET", "/", html, br, true, 200, "br page", "no-store"},
		{"GET", "/", html, gzip, true, 200, "gz page", "no-store"},
		{"GET", "/", html, "br;q=0, gzip;q=0", true, 200, "<!doctype html>page", "no-store"},
		{"HEAD", "/", html, "", true, 200, "", "no-store"},
		{"GET", "/s/demo/tasks", html, "", true, 200, "<!doctype html>page", "no-store"},
		{"GET", "/runs/1?tab=events", html, "", true, 200, "<!doctype html>page", "no-store"},
		{"GET", "/assets/a-123.js", "*/*", br, true, 200, "gz script", "public, max-age=31536000, immutable"},
		{"GET", "/assets/a-123.js", "*/*", "", true, 200, "script", "public, max-age=31536000, immutable"},
		// What is for programs stays theirs, whatever they accept: a wrong path gets a problem, not a page.
		{"GET", "/api/v1/nothing", html, "", false, 0, "", ""},
		{"GET", "/gateway/v1/nothing", html, "", false, 0, "", ""},
		{"GET", "/assets/old-456.js", html, "", false, 0, "", ""},
		{"GET", "/s/demo/tasks", "application/json", "", false, 0, "", ""},
		{"POST", "/", html, "", false, 0, "", ""},
		{"POST", "/s/demo/tasks", html, "", false, 0, "", ""},
		// Neither the packed forms nor hidden files are files of their own.
		{"GET", "/assets/a-123.js.gz", "*/*", "", false, 0, "", ""},
		{"GET", "/.keep", "*/*", "", false, 0, "", ""},
		{"GET", "/assets/../../secret", "*/*", "", false, 0, "", ""},
	} {
		wanted, answer := ask(t, built, c.method, c.path, "Accept", c.accept, "Accept-Encoding", c.encoding)
		if wanted != c.wanted {
			t.Errorf("%s %s (%s): wanted is %v", c.method, c.path, c.accept, wanted)
			continue
		}
		if !wanted {
			continue
		}
		if answer.Code != c.status || answer.Body.String() != c.body || answer.Header().Get("Cache-Control") != c.kept {
			t.Errorf("%s %s (%s; %s): %d %q %q", c.method, c.path, c.accept, c.encoding, answer.Code, answer.Body, answer.Header())
		}
	}
}

// TestPolicy: the page takes nothing inline and nothing from elsewhere.
func TestPolicy(t *testing.T) {
	for _, path := range []string{"/", "/login", "/assets/a-123.js"} {
		_, answer := ask(t, built, "GET", path, "Accept", "text/html")
		policy := answer.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if answer.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, answer.Header())
		}
	}
}

// TestNotBuilt says how to build, and is no page of its own.
func TestNotBuilt(t *testing.T) {
	wanted, answer := ask(t, fstest.MapFS{".keep": {}}, "GET", "/s/demo", "Accept", "text/html")
	if !wanted || answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "make build") {
		t.Errorf("%v %d %s", wanted, answer.Code, answer.Body)
	}
}
