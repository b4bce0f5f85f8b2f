package catalog_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cairn/domain/catalog"
	"cairn/domain/event"
)

var update = flag.Bool("update", false, "add new fixtures to testdata/fixtures.sha256; known ones stay as they are")

const digests = "testdata/fixtures.sha256"

func fixturePath(kind string, schema int) string {
	return filepath.Join("..", event.StreamKind(kind), "testdata", "events", kind, strconv.Itoa(schema)+".json")
}

// TestFixtures holds every schema that was ever written against this version: it must still decode, and
// the current one must come out as it went in.
func TestFixtures(t *testing.T) {
	registry := catalog.Registry()
	for _, a := range registry.Aggregates() {
		for _, d := range a.Events {
			for schema := 1; schema <= int(d.Schema); schema++ {
				t.Run(fmt.Sprintf("%s/%d", d.Kind, schema), func(t *testing.T) { checkFixture(t, registry, a, d, schema) })
			}
		}
	}
}

func checkFixture(t *testing.T, registry *event.Registry, a event.Aggregate, d event.Definition, schema int) {
	data, err := os.ReadFile(fixturePath(d.Kind, schema))
	if err != nil {
		t.Fatalf("every schema needs a fixture: %v", err)
	}
	decoded, err := registry.Decode(d.Kind, int16(schema), data)
	if err != nil {
		t.Fatal(err)
	}
	a.Evolve(a.Initial(), decoded)
	if schema < int(d.Schema) {
		return
	}
	var want bytes.Buffer
	if err := json.Compact(&want, data); err != nil {
		t.Fatal(err)
	}
	if got := encode(t, decoded); got != want.String() {
		t.Errorf("re-encoded differently:\n got %s\nwant %s", got, want.String())
	}
	if reflect.TypeOf(decoded) != d.Type {
		t.Errorf("decoded as %T, want %s", decoded, d.Type)
	}
}

// TestFixturesAreOnlyAdded compares the fixtures with the digests that were committed with them. A changed
// or removed fixture means that old logs would no longer be read as they were written.
func TestFixturesAreOnlyAdded(t *testing.T) {
	known := readDigests(t)
	files, err := filepath.Glob("../*/testdata/events/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := fmt.Sprintf("%x", sha256.Sum256(data))
		switch was, ok := known[file]; {
		case !ok && *update:
			known[file] = sum
		case !ok:
			t.Errorf("%s is new: run this test with -update and commit the digest", file)
		case was != sum:
			t.Errorf("%s was changed: put it back and add a new schema instead", file)
		}
	}
	for file := range known {
		if !slices.Contains(files, file) {
			t.Errorf("%s was removed: put it back", file)
		}
	}
	if *update && !t.Failed() {
		writeDigests(t, known)
	}
}

func readDigests(t *testing.T) map[string]string {
	data, err := os.ReadFile(digests)
	if err != nil && !*update {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, file, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("%s: not a digest and a file: %q", digests, line)
		}
		known[file] = sum
	}
	return known
}

func writeDigests(t *testing.T, known map[string]string) {
	var lines []string
	for file, sum := range known {
		lines = append(lines, sum+"  "+file+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	if err := os.WriteFile(digests, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}
