package api_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestReference compares docs/reference/api.md with the document, both ways.
func TestReference(t *testing.T) {
	w := newWorld(t, open)
	raw, err := os.ReadFile("../../docs/reference/api.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([A-Z]+ [^`]+)` \\|").FindAllStringSubmatch(string(raw), -1) {
		listed[match[1]] = true
	}
	all := w.operations(t)
	if all[0].document.OpenAPI != "3.1.0" {
		t.Errorf("the document is OpenAPI %s", all[0].document.OpenAPI)
	}
	for _, op := range all {
		line := op.Method + " " + strings.TrimPrefix(op.Path, "/api/v1")
		if !listed[line] {
			t.Errorf("docs/reference/api.md does not list %s", line)
		}
		delete(listed, line)
	}
	for line := range listed {
		t.Errorf("docs/reference/api.md lists %s, which does not exist", line)
	}
}

// TestDatabaseAway asks while the database refuses: a problem that says so, nothing of the inside.
func TestDatabaseAway(t *testing.T) {
	w := newWorld(t, open)
	p := w.owner(t)
	conn, err := pgx.Connect(t.Context(), strings.Replace(w.database.URL(""), "/"+w.database.Name, "/postgres", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	allow := func(yes string) {
		if _, err := conn.Exec(t.Context(), "ALTER DATABASE "+w.database.Name+" ALLOW_CONNECTIONS "+yes); err != nil {
			t.Fatal(err)
		}
	}
	allow("false")
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", w.database.Name); err != nil {
		t.Fatal(err)
	}
	for _, request := range [][2]string{{"GET", "/me"}, {"GET", "/spaces"}, {"POST", "/spaces"}} {
		h := p.do(request[0], request[1], map[string]any{"name": "x", "slug": "x"})
		if h.status != 503 || strings.Contains(string(h.body), "127.0.0.1") || strings.Contains(string(h.body), "pgx") || strings.Contains(string(h.body), "pool") || h.header.Get("Retry-After") == "" {
			t.Errorf("%v answers %d %s", request, h.status, h.body)
		}
	}
	allow("true")
	for deadline := time.Now().Add(20 * time.Second); p.do("GET", "/me", nil).status != 200; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server does not recover")
		}
	}
}
