package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	domain "cairn/domain/agent"
	"cairn/domain/run"
	"cairn/sandbox"
)

func TestEveryToolIsDescribed(t *testing.T) {
	var names []string
	for _, offered := range Offered() {
		names = append(names, offered.Name)
		var schema struct {
			Type       string
			Required   []string
			Properties map[string]struct{ Type, Description string }
		}
		if err := json.Unmarshal(offered.Parameters, &schema); err != nil || schema.Type != "object" || len(schema.Required) == 0 {
			t.Errorf("%s: parameters: %v", offered.Name, err)
		}
		for name, property := range schema.Properties {
			if property.Type == "" || property.Description == "" {
				t.Errorf("%s: %s is not described", offered.Name, name)
			}
		}
		if len(offered.Description) < 40 {
			t.Errorf("%s is described as %q", offered.Name, offered.Description)
		}
	}
	if !slices.Equal(names, domain.Tools()) {
		t.Fatalf("tools are %v, the domain grants %v", names, domain.Tools())
	}
}

func TestArgumentsAreRefusedBeforeAnythingHappens(t *testing.T) {
	cases := []struct{ tool, arguments, want string }{
		{"shell", ``, "not valid JSON"},
		{"shell", `{"command":`, "not valid JSON"},
		{"shell", `null`, "not a JSON object"},
		{"shell", `["ls"]`, "not valid JSON"},
		{"shell", `{"command":"ls"} and more`, "text follows"},
		{"shell", `{"command":7}`, "command is a number, want string"},
		{"shell", `{"command":"ls","cwd":"/"}`, `unknown field "cwd"`},
		{"shell", `{}`, "command is empty or missing"},
		{"shell", `{"command":"ls","timeout_seconds":0}`, "want 1 or more"},
		{"read", `{"path":""}`, "path is empty"},
		{"read", `{"path":"x","start_line":-1}`, "want 1 or more"},
		{"write", `{"path":"x"}`, "content is missing"},
		{"edit", `{"path":"x","old":"a"}`, "new is missing"},
		{"edit", `{"path":"x","old":"a","new":"a"}`, "the same"},
		{"edit", `{"path":"x","old":"","new":"a"}`, "old is empty"},
		{"glob", `{}`, "pattern is empty"},
		{"grep", `{"path":"x"}`, "pattern is empty"},
		{"fly", `{}`, "there is no tool"},
	}
	for _, c := range cases {
		if _, err := Parse(c.tool, c.arguments); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.tool, c.arguments, err, c.want)
		}
	}
}

func FuzzClip(f *testing.F) {
	f.Add("head", "tail", int64(3), 5)
	f.Add("ä€😀\xff\x00", "", int64(0), 3)
	f.Fuzz(func(t *testing.T, head, tail string, missing int64, most int) {
		if missing < 0 || missing > 1<<40 || most < 0 || most > 1<<20 {
			return
		}
		if missing == 0 {
			tail = ""
		}
		text, cut := clip(clean(head), clean(tail), missing, most)
		if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
			t.Fatalf("%q", text)
		}
		if len(text) > most+60 || cut != strings.Contains(text, "bytes left out") && !strings.Contains(head+tail, "bytes left out") {
			t.Fatalf("%d bytes of at most %d, cut %v: %q", len(text), most, cut, text)
		}
	})
}

func box(t *testing.T) *sandbox.Instance {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("needs root")
		}
		t.Skip("needs root")
	}
	hand := filepath.Join(t.TempDir(), "hand")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", hand, "cairn/sandbox/hand/cmd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the hand: %v\n%s", err, out)
	}
	native := sandbox.NewNative(sandbox.Options{HandPath: hand, SlotDir: filepath.Join(os.TempDir(), "cairn-test-slots"), Parent: "cairn-test"})
	t.Cleanup(func() { native.Close() })
	instance, err := native.Prepare(t.Context(), sandbox.Spec{
		ID: fmt.Sprintf("tool-%d-%d", os.Getpid(), time.Now().UnixNano()), RunDir: filepath.Join(t.TempDir(), "run"),
		Limits: sandbox.Limits{Output: 400},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	})
	return instance
}

func TestToolsAct(t *testing.T) {
	instance := box(t)
	cases := []struct {
		tool, arguments, outcome, want string
		truncated                      bool
	}{
		{"write", `{"path":"a/b.txt","content":"one\ntwo\nthree\n"}`, "ok", "created a/b.txt: 14 bytes\n", false},
		{"write", `{"path":"empty","content":""}`, "ok", "created empty: 0 bytes\n", false},
		{"write", `{"path":"empty","content":""}`, "ok", "replaced empty: 0 bytes\n", false},
		{"read", `{"path":"a/b.txt"}`, "ok", "one\ntwo\nthree\n", false},
		{"read", `{"path":"/workspace/a/b.txt","start_line":2,"line_count":1}`, "ok", "two\n", false},
		{"read", `{"path":"a/b.txt","start_line":9}`, "error", "error: a/b.txt has 3 lines, there is no line 9", false},
		{"read", `{"path":"empty"}`, "ok", "(the file is empty)\n", false},
		{"read", `{"path":"gone"}`, "error", "error: not_found: ", false},
		{"read", `{"path":"a"}`, "error", "error: is_directory: ", false},
		{"edit", `{"path":"a/b.txt","old":"two\n","new":""}`, "ok", "replaced 1 occurrence(s) in a/b.txt\n", false},
		{"edit", `{"path":"a/b.txt","old":"e","new":"E"}`, "error", "error: not_unique: ", false},
		{"edit", `{"path":"a/b.txt","old":"e","new":"E","all":true}`, "ok", "replaced 3 occurrence(s) in a/b.txt\n", false},
		{"grep", `{"pattern":"E$"}`, "ok", "a/b.txt:1: onE\na/b.txt:2: thrEE\n", false},
		{"grep", `{"pattern":"x"}`, "ok", "(no line matches)\n", false},
		{"grep", `{"pattern":"("}`, "error", "error: bad_pattern: ", false},
		{"glob", `{"pattern":"**/*.txt"}`, "ok", "a/b.txt\n", false},
		{"glob", `{"pattern":"*.go"}`, "ok", "(no file matches)\n", false},
		{"shell", `{"command":"cat a/b.txt; echo bad >&2; exit 4"}`, "ok", "exit code: 4\nonE\nthrEE\nstderr:\nbad\n", false},
		{"shell", `{"command":"printf x; echo bad >&2"}`, "ok", "exit code: 0\nx\nstderr:\nbad\n", false},
		{"shell", `{"command":"kill -9 $$"}`, "ok", "exit code: unknown (killed by signal 9)\n", false},
		{"shell", `{"command":"echo seen; sleep 60","timeout_seconds":1}`, "timeout", "exit code: unknown (timed out after 1 s)\nseen\n", false},
		{"shell", `{"command":"seq 1000; seq 1000 >&2"}`, "ok", "exit code: 0\n1\n2\n", true},
		{"shell", `{"command":"seq 1000 > long; head -c 100 /dev/zero > zeros"}`, "ok", "exit code: 0\n", false},
		{"read", `{"path":"zeros"}`, "error", "error: zeros is a binary file of 100 bytes", false},
		{"read", `{"path":"long"}`, "ok", "1\n2\n3\n", true},
		{"grep", `{"pattern":"1","path":"long"}`, "ok", "long:1: 1\n", true},
	}
	for i, c := range cases {
		act, err := Parse(c.tool, c.arguments)
		if err != nil {
			t.Fatal(err)
		}
		limits := Limits{Seconds: 10, OutputBytes: 300}
		got, err := act(t.Context(), instance, limits)
		exact := strings.HasSuffix(c.want, "\n") && !c.truncated
		if err != nil || got.Outcome != c.outcome || !strings.HasPrefix(got.Text, c.want) || exact && got.Text != c.want || got.Truncated != c.truncated {
			t.Errorf("%d: %s %s: %s %q (truncated %v): %v", i, c.tool, c.arguments, got.Outcome, got.Text, got.Truncated, err)
		}
		if len(got.Text) > 300+120 {
			t.Errorf("%d: %d bytes of text", i, len(got.Text))
		}
	}
}

func TestCutReadsSayWhereToGoOn(t *testing.T) {
	instance := box(t)
	read := func(arguments string) Result {
		act, err := Parse("read", arguments)
		if err != nil {
			t.Fatal(err)
		}
		r, err := act(t.Context(), instance, Limits{Seconds: 10, OutputBytes: 20})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if _, err := instance.Write(t.Context(), "lines", []byte("0123456789\nabcdefghij\nthird\n"+strings.Repeat("x", 50)+"\nlast"), 0); err != nil {
		t.Fatal(err)
	}
	all := ""
	for from := 1; ; {
		r := read(fmt.Sprintf(`{"path":"lines","start_line":%d}`, from))
		text, note, cut := strings.Cut(r.Text, "[... cut here")
		all += text
		if !cut {
			break
		}
		if _, err := fmt.Sscanf(note[strings.Index(note, "start_line"):], "start_line %d", &from); err != nil || !r.Truncated {
			t.Fatalf("%v in %q", err, r.Text)
		}
	}
	if want := "0123456789\nabcdefghij\nthird\n" + strings.Repeat("x", 20) + "\nlast"; all != want {
		t.Fatalf("read %q, want %q", all, want)
	}
}

func TestStoppedActIsNoResult(t *testing.T) {
	instance := box(t)
	act, err := Parse("shell", `{"command":"echo seen; sleep 60"}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r, err := act(ctx, instance, Limits{Seconds: 10, OutputBytes: 100})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(r.Text, "seen") || r.Outcome == run.OutcomeTimeout {
		t.Fatalf("%+v: %v", r, err)
	}
}
