package projection

import (
	"strings"

	"cairn/domain/run"
)

// source is the columns of where a workspace begins. A path of the host is nobody's business who reads these tables.
type source struct {
	kind                         string
	root, path, folder, manifest *string
	files, bytes                 *int64
}

func sourceOf(s run.Source) source {
	c := source{kind: s.Kind}
	switch s.Kind {
	case run.SourceFolder:
		c.root = &s.Root
		if !strings.HasPrefix(s.Path, "/") {
			c.path = &s.Path
		}
	case run.SourceFiles:
		c.files, c.bytes, c.manifest = &s.Files.Count, &s.Files.Bytes, &s.Files.Manifest.Blob
		if c.folder = text(s.Files.Folder); s.Files.Folder.IsZero() {
			whole := ""
			c.folder = &whole
		}
	}
	return c
}
