package tool

import (
	"context"
	_ "embed"
	"fmt"

	"cairn/sandbox"
)

//go:embed edit.md
var editText string

const editParameters = `{"type":"object","additionalProperties":false,"required":["path","old","new"],"properties":{
"path":{"type":"string","description":"Absolute, or below /workspace"},
"old":{"type":"string","description":"The exact text to replace, with its blanks and line ends"},
"new":{"type":"string","description":"What stands there afterwards; may be empty"},
"all":{"type":"boolean","description":"Replace every occurrence; otherwise old must occur exactly once"}}}`

type editArguments struct {
	Path string  `json:"path"`
	Old  string  `json:"old"`
	New  *string `json:"new"`
	All  bool    `json:"all"`
}

func (a *editArguments) check() error {
	if a.New == nil {
		return fmt.Errorf("new is missing; to delete the text give an empty one")
	}
	if a.Old == *a.New {
		return fmt.Errorf("old and new are the same")
	}
	if err := require("old", a.Old); err != nil {
		return err
	}
	return require("path", a.Path)
}

func (a *editArguments) act(ctx context.Context, box *sandbox.Instance, limits Limits) (Result, error) {
	return file(ctx, limits, func(ctx context.Context) (Result, error) {
		n, err := box.Edit(ctx, a.Path, a.Old, *a.New, a.All)
		return done(fmt.Sprintf("replaced %d occurrence(s) in %s\n", n, a.Path)), err
	})
}
