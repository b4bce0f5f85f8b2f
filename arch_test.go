// Package cairn holds no code: it is the root of the module. Its test keeps the rooms apart.
package cairn

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms lists every room and what of ours it may import, by prefix. A folder that is not listed fails: whoever
// adds a room says here where it stands. The longest matching prefix decides.
var rooms = map[string][]string{
	"domain/event":            {"domain/fault"},
	"domain/fault":            {},
	"domain/check":            {"domain/event", "domain/fault"},
	"domain":                  {"domain"},
	"migrations":              {},
	"db":                      {"domain", "db", "migrations"},
	"db/embedded":             {"db/embedded"},
	"db/runtoken":             {},
	"db/dbtest/container":     {},
	"server":                  {"domain", "db", "server", "web"},
	"server/portal":           {},
	"server/proxy":            {},
	"web":                     {},
	"worker":                  {"domain", "db", "worker", "sandbox"},
	"worker/agent":            {"domain"},
	"worker/model":            {},
	"sandbox":                 {"sandbox"},
	"cmd/cairn":               {"domain", "db", "server", "worker", "sandbox"},
	"db/embedded/testcluster": {"db/embedded"},
	".":                       {},
}

// restricted lists packages of others that only some rooms may use.
var restricted = map[string][]string{
	"github.com/jackc/pgx/v5":     {"db", "worker", "cmd"},
	"github.com/riverqueue/river": {"db", "worker", "cmd"},
	"github.com/pressly/goose/v3": {"db"},
	"database/sql":                {"db"},
	"os/exec":                     {"sandbox", "db/embedded"},
	"github.com/coder/websocket":  {"server", "cmd"},
	"github.com/spf13/cobra":      {"cmd"},
	"github.com/google/uuid":      {"db", "server", "worker", "cmd"},
	"golang.org/x/crypto":         {"db", "server"},
	// One room each knows how requests are described, and what a password costs.
	"github.com/danielgtaylor/huma/v2": {"server/api"},
	"github.com/alexedwards/argon2id":  {"server/auth"},
	"golang.org/x/time":                {"server/auth"},
	"github.com/prometheus":            {"server/metrics"},
	"net/http":                         {"server", "worker", "cmd", "sandbox/egress"},
}

// pure packages may import the standard library only, and of that nothing that has a clock, chance or I/O.
var (
	pure         = []string{"domain"}
	impureImport = []string{"os", "net", "io/ioutil", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "log", "log/slog", "syscall", "context"}
	impureCall   = []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After"}
)

type source struct {
	dir  string
	file *ast.File
	path string
	test bool
}

func TestRooms(t *testing.T) {
	for _, s := range sources(t) {
		allowed, known := roomOf(s.dir)
		if !known {
			t.Errorf("%s: no room is listed for %s: say in arch_test.go what it may import", s.path, s.dir)
			continue
		}
		for _, imported := range imports(s.file) {
			ours, isOurs := strings.CutPrefix(imported, "cairn/")
			if isOurs && !s.test && !under(ours, allowed) && ours != s.dir {
				t.Errorf("%s imports %s: the room %s may import only %v", s.path, imported, s.dir, allowed)
			}
			if !s.test {
				checkRestricted(t, s, imported)
			}
		}
		if under(s.dir, pure) && !s.test {
			checkPure(t, s)
		}
	}
}

func checkRestricted(t *testing.T, s source, imported string) {
	t.Helper()
	for name, where := range restricted {
		if (imported == name || strings.HasPrefix(imported, name+"/")) && !under(s.dir, where) {
			t.Errorf("%s imports %s: only %v may", s.path, imported, where)
		}
	}
}

func checkPure(t *testing.T, s source) {
	t.Helper()
	for _, imported := range imports(s.file) {
		if strings.Contains(strings.Split(imported, "/")[0], ".") {
			t.Errorf("%s imports %s: a pure room has the standard library only", s.path, imported)
		}
		if slices.Contains(impureImport, imported) {
			t.Errorf("%s imports %s: a pure room has no clock, chance or I/O", s.path, imported)
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := call.X.(*ast.Ident); ok && slices.Contains(impureCall, x.Name+"."+call.Sel.Name) {
				t.Errorf("%s uses %s.%s: time enters a pure room from the edge", s.path, x.Name, call.Sel.Name)
			}
		}
		return true
	})
}

// forbidden names say nothing about what a package knows.
var forbidden = []string{"util", "utils", "common", "models", "service", "services", "manager", "managers", "helpers", "helper", "misc"}

func TestNamesDocsAndLengths(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if slices.Contains(forbidden, path.Base(s.dir)) {
			t.Errorf("%s: name the package after what it knows", s.dir)
		}
		generated := ast.IsGenerated(s.file)
		if !s.test {
			documented[s.dir] = documented[s.dir] || generated || s.file.Doc != nil && len(s.file.Doc.Text()) > 60
		}
		if lines := lineCount(t, s.path); lines > 500 && !generated {
			t.Errorf("%s has %d lines: divide it by what it knows (500 at most)", s.path, lines)
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no doc that says what it is", dir)
		}
	}
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); name != "." && (strings.HasPrefix(base, ".") || base == "node_modules" || base == "testdata" || name == "tools") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, source{dir: filepath.ToSlash(filepath.Dir(name)), file: parsed, path: name, test: testOnly(name)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// testOnly reports whether a file belongs to tests: rooms may be put together differently there.
func testOnly(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.HasPrefix(filepath.ToSlash(name), "db/dbtest/")
}

func roomOf(dir string) ([]string, bool) {
	for d := dir; ; d = path.Dir(d) {
		if allowed, ok := rooms[d]; ok && (d != "." || dir == ".") {
			return allowed, true
		}
		if d == "." {
			return nil, false
		}
	}
}

func under(dir string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return dir == p || strings.HasPrefix(dir, p+"/") })
}

func imports(file *ast.File) []string {
	names := make([]string, len(file.Imports))
	for i, spec := range file.Imports {
		names[i], _ = strconv.Unquote(spec.Path.Value)
	}
	return names
}

func lineCount(t *testing.T, name string) int {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(content), "\n")
}
