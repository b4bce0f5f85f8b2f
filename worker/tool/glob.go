package tool

import (
	"context"
	_ "embed"

	"cairn/sandbox"
)

//go:embed glob.md
var globText string

const globParameters = `{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
"pattern":{"type":"string","description":"Such as *.go or src/**/*_test.go"},
"path":{"type":"string","description":"Folder to search in, absolute or below /workspace; /workspace if not given"}}}`

// maxFound is the number of results of one search.
const maxFound = 1000

type globArguments struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (a *globArguments) check() error { return require("pattern", a.Pattern) }

func (a *globArguments) act(ctx context.Context, box *sandbox.Instance, limits Limits) (Result, error) {
	return file(ctx, limits, func(ctx context.Context) (Result, error) {
		paths, more, err := box.Glob(ctx, a.Path, a.Pattern, maxFound)
		return found(paths, more, limits.OutputBytes, "(no file matches)\n"), err
	})
}
