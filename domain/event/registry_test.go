package event

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"cairn/domain/fault"
)

type renamed struct {
	New string `json:"new"`
}

func (renamed) Kind() string { return "test.renamed" }

func rename(data json.RawMessage) (json.RawMessage, error) {
	var old struct{ Old string }
	if err := json.Unmarshal(data, &old); err != nil {
		return nil, err
	}
	if old.Old == "boom" {
		return nil, errors.New("boom")
	}
	return json.Marshal(renamed{New: old.Old})
}

func testRegistry() *Registry {
	return NewRegistry(Aggregate{Kind: "test", Events: []Definition{Define[renamed](rename), Define[sample]()}})
}

func TestDecodeUpcasts(t *testing.T) {
	r := testRegistry()
	for schema, data := range map[int16]string{1: `{"old":"x"}`, 2: `{"new":"x"}`} {
		if e, err := r.Decode("test.renamed", schema, json.RawMessage(data)); err != nil || e != (renamed{New: "x"}) {
			t.Errorf("schema %d: %v, %v", schema, e, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	r := testRegistry()
	cases := []struct {
		kind   string
		schema int16
		data   string
		code   string
	}{
		{"test.unknown", 1, `{}`, "unknown_event_kind"},
		{"", 1, `{}`, "unknown_event_kind"},
		{"test.renamed", 3, `{}`, "unknown_event_schema"},
		{"test.renamed", 0, `{}`, "unknown_event_schema"},
		{"test.renamed", -1, `{}`, "unknown_event_schema"},
		{"test.renamed", 2, `{`, ""},
		{"test.renamed", 2, ``, ""},
		{"test.renamed", 1, `{"old":"boom"}`, ""},
	}
	for _, c := range cases {
		_, err := r.Decode(c.kind, c.schema, json.RawMessage(c.data))
		if err == nil || c.code != "" && !fault.HasCode(err, c.code) {
			t.Errorf("%s/%d %s: %v", c.kind, c.schema, c.data, err)
		}
	}
}

func TestRegistryRefusesDoubles(t *testing.T) {
	a := Aggregate{Kind: "test", Events: []Definition{Define[sample]()}}
	for name, build := range map[string]func(){
		"aggregate twice":    func() { NewRegistry(a, a) },
		"event twice":        func() { NewRegistry(Aggregate{Kind: "test", Events: []Definition{Define[sample](), Define[sample]()}}) },
		"foreign event":      func() { NewRegistry(Aggregate{Kind: "other", Events: a.Events}) },
		"pointer to sealed":  func() { Define[pointing]() },
		"kind without a dot": func() { Define[dotless]() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", name)
				}
			}()
			build()
		}()
	}
}

type pointing struct{ Text *Sealed }

func (pointing) Kind() string { return "test.pointed" }

type dotless struct{}

func (dotless) Kind() string { return "dotless" }

func TestDefinition(t *testing.T) {
	d, ok := testRegistry().Definition("test.sampled")
	var paths []string
	for _, f := range d.Fields {
		paths = append(paths, f.Path)
	}
	if got := strings.Join(paths, " "); !ok || got != "one own none inner.Deep parts[].text bare[]" {
		t.Errorf("fields %q", got)
	}
	if got := (&Record{StreamID: ID{1}, Kind: "run.started"}).Stream().Kind; got != "run" {
		t.Errorf("stream kind %q", got)
	}
}
