package tool

import (
	"context"
	_ "embed"
	"fmt"

	"cairn/sandbox"
)

//go:embed write.md
var writeText string

const writeParameters = `{"type":"object","additionalProperties":false,"required":["path","content"],"properties":{
"path":{"type":"string","description":"Absolute, or below /workspace"},
"content":{"type":"string","description":"The whole new content of the file"}}}`

type writeArguments struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

func (a *writeArguments) check() error {
	if a.Content == nil {
		return fmt.Errorf("content is missing; for an empty file give an empty text")
	}
	return require("path", a.Path)
}

func (a *writeArguments) act(ctx context.Context, box *sandbox.Instance, limits Limits) (Result, error) {
	return file(ctx, limits, func(ctx context.Context) (Result, error) {
		created, err := box.Write(ctx, a.Path, []byte(*a.Content), 0)
		how := "replaced"
		if created {
			how = "created"
		}
		return done(fmt.Sprintf("%s %s: %d bytes\n", how, a.Path, len(*a.Content))), err
	})
}
