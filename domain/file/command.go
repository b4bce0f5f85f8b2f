package file

import (
	"cairn/domain/event"
	"cairn/domain/space"
)

// Store gives paths of a space their contents: all of them or none. Everyone who works in the space may.
type Store struct {
	Space event.ID `json:"space"`
	Files []Upload `json:"files"`
}

// Upload is one file, whose content is in the blob store already.
type Upload struct {
	Path       string        `json:"path"`
	MAC        []byte        `json:"mac"`     // HMAC-SHA-256 of the path, 32 bytes
	Parents    [][]byte      `json:"parents"` // the same of each folder above it, as Parents lists them
	Digest     string        `json:"sha256"`  // of the content, hexadecimal
	Content    event.Content `json:"content"`
	MediaType  string        `json:"media_type"`
	Executable bool          `json:"executable"`
}

// Name implements event.Command.
func (Store) Name() string { return "file.store" }

// Streams implements event.Command. The folders above are there to see that none of them is a file.
func (c Store) Streams() []event.Ref {
	refs := make([]event.Ref, 0, 2*len(c.Files)+1)
	seen := map[event.ID]bool{}
	add := func(ref event.Ref) {
		if !seen[ref.ID] {
			seen[ref.ID] = true
			refs = append(refs, ref)
		}
	}
	for _, f := range c.Files {
		add(Stream(c.Space, f.MAC))
	}
	for _, f := range c.Files {
		for _, mac := range f.Parents {
			add(Stream(c.Space, mac))
		}
	}
	if len(refs) == 0 {
		add(Stream(c.Space, nil))
	}
	return append(refs, space.Stream(c.Space))
}

// Answer implements event.Command.
func (c Store) Answer() any {
	answer := Answer{Files: make([]event.ID, len(c.Files))}
	for i, f := range c.Files {
		answer.Files[i] = Stream(c.Space, f.MAC).ID
	}
	return answer
}

// Answer names the files, in the order of the command.
type Answer struct {
	Files []event.ID `json:"file_ids"`
}

// Remove takes a file out of the space. Runs that were queued with it keep it. Everyone who works in the space may.
type Remove struct {
	Space event.ID `json:"space"`
	File  event.ID `json:"file"`
}

// Name implements event.Command.
func (Remove) Name() string { return "file.remove" }

// Streams implements event.Command.
func (c Remove) Streams() []event.Ref {
	return []event.Ref{Ref(c.File, c.Space), space.Stream(c.Space)}
}

// Answer implements event.Command.
func (c Remove) Answer() any { return Answer{Files: []event.ID{c.File}} }
