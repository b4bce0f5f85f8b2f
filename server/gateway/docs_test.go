package gateway

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func readDocs(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestTheExampleOfTheDocsLoads(t *testing.T) {
	_, rest, _ := strings.Cut(readDocs(t), "```json\n")
	example, _, _ := strings.Cut(rest, "```")
	path := writeModels(t, example)
	keys := filepath.Join(filepath.Dir(path), "keys")
	if err := os.Mkdir(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(keys, "example"), []byte(testKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	models, err := LoadModels(path, func(name string) (string, bool) { return testKey, name == "HOUSE_KEY" })
	if err != nil || len(models) != 3 || !models[0].Key.known() || models[1].Key.known() || !models[2].Key.known() {
		t.Fatal(models, err)
	}
}

// TestTheDocsNameEveryCode reads the constants from the source, so that a code
// added later is missed here.
func TestTheDocsNameEveryCode(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "problem.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	docs, found := readDocs(t), 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "code") || spec.Names[0].Name == "codeOK" {
			return true
		}
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if !strings.Contains(docs, "| `"+code+"` |") {
			t.Errorf("docs/models.md does not explain %s", code)
		}
		return true
	})
	if found < 20 {
		t.Fatalf("found %d codes", found)
	}
}
