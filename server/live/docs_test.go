package live_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"cairn/server/live"
)

func TestTheDocsNameEveryCodeAndFrame(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/live.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range documented {
		if !strings.Contains(string(text), fmt.Sprintf("\n| %d |", code)) {
			t.Errorf("close code %d is not in the table", code)
		}
	}
	raw, err := os.ReadFile("../../docs/reference/live.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Defs map[string]struct {
			Required   []string                   `json:"required"`
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &described); err != nil {
		t.Fatal(err)
	}
	for name, def := range described.Defs {
		if _, frame := def.Properties["type"]; !frame {
			continue
		}
		var row string
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "| `"+name+"` |") {
				row = line
			}
		}
		if row == "" {
			t.Errorf("%s is in no table", name)
		}
		for field := range def.Properties {
			if field != "type" && !strings.Contains(row, "`"+field+"`") {
				t.Errorf("%s: the docs do not name %s", name, field)
			}
		}
	}
}

// What the schema says of a client's messages is what the server takes.
func TestTheSchemaOfClientMessages(t *testing.T) {
	schema := jsonschema.NewCompiler().MustCompile("../../docs/reference/live.schema.json#/$defs/client_message")
	const id = "0198a000-0000-7000-8000-0000000000ff"
	for text, valid := range map[string]bool{
		`{"type":"auth","token":"t"}`:                                                               true,
		`{"type":"subscribe","topic":"` + id + `","after":0}`:                                       true,
		`{"type":"subscribe","topic":"` + id + `","after":1,"log_id":"` + id + `","incarnation":1}`: true,
		`{"type":"unsubscribe","topic":"` + id + `"}`:                                               true,
		`{"type":"subscribe","topic":"` + id + `/activity","after":0}`:                              true,
		`{"type":"unsubscribe","topic":"` + id + `/activity"}`:                                      true,
		`{"type":"subscribe","topic":"` + id + `/other","after":0}`:                                 false,
		`{"type":"subscribe","topic":"` + id + `/activity/activity","after":0}`:                     false,
		`{"type":"unsubscribe","topic":"/activity"}`:                                                false,
		`{"type":"auth"}`:                                                                                 false,
		`{"type":"auth","token":""}`:                                                                      false,
		`{"type":"subscribe","topic":"` + id + `"}`:                                                       false,
		`{"type":"subscribe","topic":"` + id + `","after":1}`:                                             false,
		`{"type":"subscribe","topic":"` + id + `","after":-1}`:                                            false,
		`{"type":"subscribe","topic":"` + id + `","after":0,"token":"t"}`:                                 false,
		`{"type":"unsubscribe","topic":"x"}`:                                                              false,
		`{"type":"unsubscribe","topic":"` + id + `","after":1,"log_id":"` + id + `","incarnation":1}`:     false,
		`{"type":"other","topic":"` + id + `"}`:                                                           false,
		`{"type":"subscribe","topic":"` + id + `","after":0,"log_id":"` + id + `","incarnation":1,"x":1}`: false,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != valid {
			t.Errorf("%s: the schema says %v", text, err)
		}
		if live.Takes(text) != valid {
			t.Errorf("%s: the server takes it: %v", text, !valid)
		}
	}
}
