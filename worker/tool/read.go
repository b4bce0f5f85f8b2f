package tool

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strings"

	"cairn/sandbox"
)

//go:embed read.md
var readText string

const readParameters = `{"type":"object","additionalProperties":false,"required":["path"],"properties":{
"path":{"type":"string","description":"Absolute, or below /workspace"},
"start_line":{"type":"integer","minimum":1,"description":"First line to read, from 1"},
"line_count":{"type":"integer","minimum":1,"description":"Number of lines to read"}}}`

type readArguments struct {
	Path      string `json:"path"`
	StartLine *int64 `json:"start_line"`
	LineCount *int64 `json:"line_count"`
}

func (a *readArguments) check() error {
	if a.StartLine != nil && *a.StartLine < 1 {
		return fmt.Errorf("start_line is %d, want 1 or more", *a.StartLine)
	}
	if a.LineCount != nil && *a.LineCount < 1 {
		return fmt.Errorf("line_count is %d, want 1 or more", *a.LineCount)
	}
	return require("path", a.Path)
}

func (a *readArguments) act(ctx context.Context, box *sandbox.Instance, limits Limits) (Result, error) {
	return file(ctx, limits, func(ctx context.Context) (Result, error) {
		read, err := box.Read(ctx, a.Path, 0, sandbox.MaxRead)
		if err != nil {
			return Result{}, err
		}
		if bytes.IndexByte(read.Data[:min(len(read.Data), 8<<10)], 0) >= 0 {
			return failed(fmt.Sprintf("error: %s is a binary file of %d bytes: use a shell command to look into it", a.Path, read.Size)), nil
		}
		return a.part(read, limits.OutputBytes), nil
	})
}

// part takes the lines that were asked for, as many as fit, and says where to go on.
func (a *readArguments) part(read sandbox.ReadResult, most int64) Result {
	first := int64(1)
	if a.StartLine != nil {
		first = *a.StartLine
	}
	var b strings.Builder
	line, size := int64(0), int64(0)
	next := int64(0) // first line that was asked for and does not fit
	for text := range strings.Lines(clean(string(read.Data))) {
		line++
		if line < first || a.LineCount != nil && line >= first+*a.LineCount {
			continue
		}
		size += int64(len(text))
		if next == 0 && int64(b.Len()+len(text)) > most {
			next = line
			if b.Len() == 0 {
				b.WriteString(upTo(text, int(most)))
				next = line + 1
			}
		}
		if next == 0 {
			b.WriteString(text)
		}
	}
	if first > line && line > 0 {
		return failed(fmt.Sprintf("error: %s has %d lines, there is no line %d", a.Path, line, first))
	}
	r := done(b.String())
	r.Bytes = size
	r.Truncated = next != 0 || read.Truncated
	return a.note(r, next, line, read)
}

func (a *readArguments) note(r Result, next, lines int64, read sandbox.ReadResult) Result {
	if r.Text != "" && r.Truncated && !strings.HasSuffix(r.Text, "\n") {
		r.Text += "\n"
	}
	switch {
	case next != 0:
		r.Text += fmt.Sprintf("[... cut here; the file has %d lines: go on with start_line %d ...]\n", lines, next)
	case read.Truncated:
		r.Text += fmt.Sprintf("[... the file has %d bytes, of which the first %d were read: use a shell command for the rest ...]\n", read.Size, len(read.Data))
	case read.Size == 0:
		r.Text = "(the file is empty)\n"
	}
	return r
}
