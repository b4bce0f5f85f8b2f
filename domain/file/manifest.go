package file

import (
	"encoding/json"
	"slices"
	"strings"

	"cairn/domain/event"
	"cairn/domain/fault"
)

// The bounds of what one workspace may begin with.
const (
	MaxManifestFiles = 20_000
	MaxManifestBytes = 1 << 30
)

// Manifest lists the files that a workspace begins with, by path. It is content of its space, and what it was when
// the run was queued: the contents that it names never change.
type Manifest struct {
	Format int     `json:"format"` // 1
	Files  []Entry `json:"files"`
}

// Entry is one file. Path is relative to the workspace.
type Entry struct {
	Path       string        `json:"path"`
	Digest     string        `json:"sha256"`
	Content    event.Content `json:"content"`
	Executable bool          `json:"executable"`
}

// Bytes is the size of all contents.
func (m Manifest) Bytes() int64 {
	total := int64(0)
	for _, e := range m.Files {
		total += e.Content.Size
	}
	return total
}

// Encode sorts the files and answers the bytes to store: the same for the same files.
func (m Manifest) Encode(space event.ID) ([]byte, error) {
	m.Format, m.Files = 1, slices.Clone(m.Files)
	slices.SortFunc(m.Files, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	if err := m.check(space); err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// DecodeManifest reads a stored manifest and checks it again: its paths are about to become files of a host.
func DecodeManifest(raw []byte, space event.ID) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fault.New(fault.Unavailable, "manifest_unreadable", "the list of files does not decode: %v: it was altered", err)
	}
	if m.Format != 1 {
		return m, fault.New(fault.Unavailable, "manifest_unreadable", "the list of files has format %d, this version knows 1: run the version of Cairn that wrote it, or a later one", m.Format)
	}
	return m, m.check(space)
}

func (m Manifest) check(space event.ID) error {
	if len(m.Files) > MaxManifestFiles || m.Bytes() > MaxManifestBytes {
		return fault.Field("source", "%d files with %d bytes, a workspace may begin with %d files and %d bytes: choose a folder with less", len(m.Files), m.Bytes(), MaxManifestFiles, MaxManifestBytes)
	}
	paths := make(map[string]bool, len(m.Files))
	for _, e := range m.Files {
		if err := CheckPath("source", e.Path); err != nil {
			return err
		}
		if paths[e.Path] || !e.Content.IsWhole(space) || len(e.Digest) != 64 {
			return fault.Field("source", "%.120q is there twice, or without content of this space", e.Path)
		}
		paths[e.Path] = true
	}
	for _, e := range m.Files {
		for _, folder := range Parents(e.Path) {
			if paths[folder] {
				return fault.New(fault.Conflict, "file_clash", "%.120q is a file and the folder of %.120q: remove one of them", folder, e.Path)
			}
		}
	}
	return nil
}
