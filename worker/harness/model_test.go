package harness

import (
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/domain/check"
	"cairn/worker/model"
)

// Whatever a model says, the log can hold its calls.
func FuzzWishes(f *testing.F) {
	f.Add("shell", `{}`)
	f.Add("", "\x00")
	f.Add(strings.Repeat("ä", 100), "\xff\xfe")
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		wish := wishes(3, []model.Call{{Name: tool, Arguments: arguments}})[0]
		if wish.ID != "call_3_0" {
			t.Fatalf("id %q", wish.ID)
		}
		if err := check.First(check.Name("tool", wish.Tool, 64), check.Name("finish", finish(tool), 64)); err != nil {
			t.Fatal(err)
		}
		if err := check.Text("arguments", wish.Arguments, 0, 1<<30); err != nil {
			t.Fatal(err)
		}
		if text := bounded(strings.Repeat(arguments, 3000)); len(text) > 9<<10 || !utf8.ValidString(text) {
			t.Fatalf("%d bytes", len(text))
		}
	})
}
