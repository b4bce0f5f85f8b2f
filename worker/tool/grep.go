package tool

import (
	"context"
	_ "embed"
	"fmt"

	"cairn/sandbox"
)

//go:embed grep.md
var grepText string

const grepParameters = `{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
"pattern":{"type":"string","description":"Regular expression in Go's syntax (RE2)"},
"path":{"type":"string","description":"File or folder to search in, absolute or below /workspace; /workspace if not given"},
"glob":{"type":"string","description":"Only files whose name, or with a slash whose path, matches, such as *.go"}}}`

type grepArguments struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
}

func (a *grepArguments) check() error { return require("pattern", a.Pattern) }

func (a *grepArguments) act(ctx context.Context, box *sandbox.Instance, limits Limits) (Result, error) {
	return file(ctx, limits, func(ctx context.Context) (Result, error) {
		matches, more, err := box.Grep(ctx, a.Path, a.Pattern, a.Glob, maxFound)
		lines := make([]string, len(matches))
		for i, m := range matches {
			lines[i] = fmt.Sprintf("%s:%d: %s", m.Path, m.Line, m.Text)
		}
		return found(lines, more, limits.OutputBytes, "(no line matches)\n"), err
	})
}
