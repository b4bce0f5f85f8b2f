package catalog_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cairn/domain/account"
	"cairn/domain/catalog"
	"cairn/domain/event"
	"cairn/domain/run"
)

// plainStrings are the fields of events that are plain text although people or models have a say in them,
// each with the reason why that is right. Everything else that is a string must be an identifier or a code.
var plainStrings = map[string]string{
	"conversation.message_posted.author":            "an actor: an id, not a name",
	"conversation.opened.source.path":               "operator data: a folder that the installation offers",
	"conversation.opened.mounts[].source":           "operator data: a tool chain that the installation offers",
	"conversation.opened.mounts[].target":           "operator data",
	"run.queued.source.path":                        "operator data, as in conversation.opened",
	"run.queued.mounts[].source":                    "operator data, as in conversation.opened",
	"run.queued.mounts[].target":                    "operator data, as in conversation.opened",
	"task.opened.source.path":                       "operator data, as in conversation.opened",
	"task.opened.mounts[].source":                   "operator data, as in conversation.opened",
	"task.opened.mounts[].target":                   "operator data, as in conversation.opened",
	"run.sandbox_prepared.cgroup":                   "operator data: made by the worker",
	"run.sandbox_prepared.upper":                    "operator data: made by the worker",
	"run.sandbox_prepared.report":                   "facts about the kernel, made by the worker",
	"account.session_revoked.reason":                "a code of a closed list",
	"account.action_denied.route":                   "a pattern of the interface, never the path that was asked for",
	"account.action_denied.rule":                    "a code of a closed list",
	"run.cancel_requested.reason":                   "a code of a closed list",
	"agent.revised.egress.tier":                     "a code of a closed list",
	"agent.revised.egress.rules[].methods[]":        "capitals and hyphens, at most 32: checked when it is set",
	"agent.revised.egress.rules[].paths[]":          "a boundary, which its readers must be able to judge; no query and no escapes",
	"run.queued.egress.tier":                        "as in agent.revised",
	"run.queued.egress.rules[].methods[]":           "as in agent.revised",
	"run.queued.egress.rules[].paths[]":             "as in agent.revised",
	"run.queued.space_egress.tier":                  "as in agent.revised",
	"run.queued.space_egress.rules[].methods[]":     "as in agent.revised",
	"run.queued.space_egress.rules[].paths[]":       "as in agent.revised",
	"space.egress_bounded.egress.tier":              "as in agent.revised",
	"space.egress_bounded.egress.rules[].methods[]": "as in agent.revised",
	"space.egress_bounded.egress.rules[].paths[]":   "as in agent.revised",
	"run.egress_decided.decisions[].rule":           "tier and host of a rule of the policy",
	"run.egress_decided.decisions[].reason":         "a code of a closed list",
	"run.egress_decided.decisions[].method":         "at most 32 capitals and hyphens: checked when it is recorded",
	"run.limit_reached.limit":                       "a code of a closed list",
	"run.limit_reached.by":                          "a code of a closed list",
	"run.sandbox_closed.over_limit":                 "a code of a closed list",
	"run.sandbox_closed.unknown[].field":            "a code: the name of a field",
	"run.sandbox_closed.unknown[].reason":           "facts about the kernel, made by the worker",
}

// codes are names of fields whose rules allow nothing but a short code, name or host.
var codes = []string{
	"account_kind", "backend", "blob", "call", "claim_kind", "code", "finish", "grade", "host", "id", "kind", "media_type", "method", "model",
	"outcome", "owner_kind", "queue", "role", "root", "tool", "tools[]", "worker",
}

// TestContentIsSealed refuses plain strings in events unless they are known not to be content.
func TestContentIsSealed(t *testing.T) {
	used := map[string]bool{}
	for _, d := range definitions() {
		walkStrings(d.Type, "", func(path string) {
			name := path[strings.LastIndexByte(path, '.')+1:]
			full := d.Kind + "." + path
			if used[full] = true; plainStrings[full] == "" && !slices.Contains(codes, name) {
				t.Errorf("%s is plain text: make it event.Sealed, or say in plainStrings why it cannot be content", full)
			}
		})
	}
	for path := range plainStrings {
		if !used[path] {
			t.Errorf("%s is excused but does not exist", path)
		}
	}
}

func walkStrings(t reflect.Type, path string, found func(path string)) {
	switch {
	case t == reflect.TypeFor[event.Sealed]() || t == reflect.TypeFor[event.ID]() || t.PkgPath() == "time":
	case t.Kind() == reflect.String || t == reflect.TypeFor[json.RawMessage]():
		found(path)
	case t.Kind() == reflect.Pointer:
		walkStrings(t.Elem(), path, found)
	case t.Kind() == reflect.Slice:
		walkStrings(t.Elem(), path+"[]", found)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			walkStrings(t.Field(i).Type, strings.TrimPrefix(path+"."+name, "."), found)
		}
	}
}

func definitions() []event.Definition {
	var all []event.Definition
	for _, a := range catalog.Registry().Aggregates() {
		all = append(all, a.Events...)
	}
	return all
}

// TestSealedKeys checks that each sealed field has a key: the account's in account streams, else the space's.
func TestSealedKeys(t *testing.T) {
	spaceless := []string{"account", "claim"}
	for _, d := range definitions() {
		kind := event.StreamKind(d.Kind)
		for _, f := range d.Fields {
			if f.Account != (kind == account.Kind) || !f.Account && slices.Contains(spaceless, kind) {
				t.Errorf("%s.%s: account key %v in a stream of kind %s", d.Kind, f.Path, f.Account, kind)
			}
		}
	}
}

var snake = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// TestNames checks kinds, command names and JSON names.
func TestNames(t *testing.T) {
	for _, d := range definitions() {
		if !regexp.MustCompile(`^[a-z]+\.[a-z_]+$`).MatchString(d.Kind) {
			t.Errorf("kind %q", d.Kind)
		}
		checkJSONNames(t, d.Kind, d.Type)
	}
	seen := map[string]bool{}
	for _, c := range catalog.Commands() {
		kind, _, _ := strings.Cut(c.Name(), ".")
		if seen[c.Name()] || kind != c.Streams()[0].Kind {
			t.Errorf("command %s is listed twice, or its first stream is a %s", c.Name(), c.Streams()[0].Kind)
		}
		seen[c.Name()] = true
		if reflect.TypeOf(c).Kind() != reflect.Struct {
			t.Errorf("command %s is a %T, want a struct", c.Name(), c)
		}
		checkJSONNames(t, c.Name(), reflect.TypeOf(c))
		encode(t, c)
		encode(t, c.Answer())
	}
}

func checkJSONNames(t *testing.T, what string, typ reflect.Type) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || !strings.HasPrefix(typ.PkgPath(), "cairn/domain/") || typ == reflect.TypeFor[event.Sealed]() {
		return
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		// A field that an event gained later is left out where it has nothing: so old events stay as they were written.
		if !f.Anonymous && (!f.IsExported() || !snake.MatchString(name) || options != "" && options != "omitzero") {
			t.Errorf("%s: field %s has the JSON name %q, options %q", what, f.Name, name, options)
		}
		checkJSONNames(t, what, f.Type)
	}
}

// TestZeroCommands: a command without anything in it is refused by every noun, never a panic.
func TestZeroCommands(t *testing.T) {
	for _, c := range catalog.Commands() {
		for _, actor := range []string{event.System, "", "worker/a", event.AccountActor(id("account", 0))} {
			if err := newWorld(t).execute(actor, c); err == nil {
				t.Errorf("%s as %q was accepted with nothing in it", c.Name(), actor)
			}
		}
	}
}

// TestEvolveIsTotal folds each event into each aggregate's initial state and into a wrong one.
func TestEvolveIsTotal(t *testing.T) {
	for _, a := range catalog.Registry().Aggregates() {
		for _, d := range definitions() {
			zero := reflect.Zero(d.Type).Interface().(event.Event)
			once := a.Evolve(a.Initial(), zero)
			a.Evolve(once, zero)
			a.Evolve("not a state", zero)
			if event.StreamKind(d.Kind) != a.Kind && !reflect.DeepEqual(once, a.Initial()) {
				t.Errorf("%s changed a %s", d.Kind, a.Kind)
			}
		}
	}
}

// TestTerminalRunsStay folds every event into runs that have ended.
func TestTerminalRunsStay(t *testing.T) {
	for _, end := range []event.Event{run.Succeeded{}, run.Failed{Code: "x"}, run.Cancelled{}} {
		ended := run.Evolve(run.Evolve(run.State{}, run.Queued{Queue: "q"}), end)
		for _, d := range definitions() {
			if after := run.Evolve(ended, reflect.Zero(d.Type).Interface().(event.Event)); !reflect.DeepEqual(after, ended) {
				t.Errorf("%s changed a run that was %s", d.Kind, ended.Status)
			}
		}
	}
}

// FuzzDecode: no stored data may stop a process. What decodes must also encode, and fold.
func FuzzDecode(f *testing.F) {
	registry := catalog.Registry()
	for _, d := range definitions() {
		f.Add(d.Kind, int16(1), []byte(`{"epoch":1,"tools":[null],"calls":[{}],"text":{"key":"x"}}`))
		f.Add(d.Kind, int16(1), []byte(`null`))
	}
	f.Add("run.unknown", int16(-1), []byte(`[`))
	f.Fuzz(func(t *testing.T, kind string, schema int16, data []byte) {
		e, err := registry.Decode(kind, schema, data)
		if err != nil {
			return
		}
		if _, err := json.Marshal(e); err != nil && !strings.Contains(err.Error(), "Time.MarshalJSON") {
			t.Fatalf("decoded and does not encode: %v", err)
		}
		for _, a := range registry.Aggregates() {
			a.Evolve(a.Evolve(a.Initial(), e), e)
		}
	})
}
