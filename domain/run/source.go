package run

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// The kinds of sources.
const (
	SourceNone   = "none"   // an empty workspace
	SourceFolder = "folder" // a folder of the host, read-only beneath the workspace
	SourceFiles  = "files"  // files of the space as they were when the conversation began
)

// Source is what the workspace starts from. A worker mounts only what lies in a root of that name that it
// was configured with: the path alone gives no right to anything.
type Source struct {
	Kind  string `json:"kind"`
	Root  string `json:"root"`  // name of the root that offers the folder; empty for other kinds
	Path  string `json:"path"`  // of kind folder: below the root, or absolute on the host; empty is the root itself
	Files Files  `json:"files"` // of kind files; left out for other kinds
}

// Files are pinned: what the manifest lists never changes, whatever becomes of the space's files.
type Files struct {
	Folder   event.Sealed  `json:"folder"`   // the folder of the space that was chosen, which is the workspace's root; null: all of them
	Manifest event.Content `json:"manifest"` // the list of paths and contents
	Count    int64         `json:"count"`    // number of files
	Bytes    int64         `json:"bytes"`    // of their contents together
}

// MarshalJSON leaves files out where there are none, as sources were written before there was this kind.
func (s Source) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kind  string `json:"kind"`
		Root  string `json:"root"`
		Path  string `json:"path"`
		Files Files  `json:"files,omitzero"`
	}(s))
}

// IsZero reports whether there is nothing.
func (f Files) IsZero() bool { return f.Folder.IsZero() && f.Manifest.IsZero() }

// Copied is the source for another event: sealed text is bound to the event that holds it, and is sealed anew.
func (s Source) Copied() Source {
	if !s.Files.Folder.IsZero() {
		s.Files.Folder = event.Seal(s.Files.Folder.Text())
	}
	return s
}

// Mount is a tool chain that is mounted read-only. A worker mounts only what it was configured to offer.
type Mount struct {
	Source string `json:"source"` // absolute path on the host
	Target string `json:"target"` // absolute path in the sandbox
}

const maxMounts = 32

// CheckSource refuses a source that cannot be meant.
func CheckSource(field string, s Source) error {
	if err := check.OneOf(field+".kind", s.Kind, SourceNone, SourceFolder, SourceFiles); err != nil {
		return err
	}
	if s.Kind != SourceFiles && !s.Files.IsZero() {
		return fault.Field(field, "kind %s has no files: leave them out, or use kind files", s.Kind)
	}
	switch {
	case s.Kind == SourceFolder:
		return check.First(check.Name(field+".root", s.Root, 64), checkBelow(field+".path", s.Path))
	case s.Root != "" || s.Path != "":
		return fault.Field(field, "kind %s has no root and no path: leave them empty, or use kind folder", s.Kind)
	case s.Kind == SourceFiles && (!s.Files.Manifest.IsWhole(s.Files.Manifest.Key) || s.Files.Count < 0 || s.Files.Bytes < 0):
		return fault.Field(field+".files", "kind files needs its manifest: store the list of files first")
	}
	return nil
}

// checkBelow takes a folder of the host, absolute as 'cairn run' gives it, or relative to the root.
func checkBelow(field, value string) error {
	if value == "" {
		return nil
	}
	if path.IsAbs(value) {
		return check.Path(field, value)
	}
	if err := check.Path(field, "/"+value); err != nil || value == ".." || strings.HasPrefix(value, "../") || path.Clean(value) != value {
		return fault.Field(field, "%.120q is not a folder below the root: give it without . and .., and without a slash at its ends", value)
	}
	return nil
}

// CheckMounts refuses mounts that cannot be meant.
func CheckMounts(field string, mounts []Mount) error {
	if len(mounts) > maxMounts {
		return fault.Field(field, "%d mounts, the limit is %d: mount a common parent", len(mounts), maxMounts)
	}
	for i, m := range mounts {
		at := field + "[" + strconv.Itoa(i) + "]"
		if err := check.First(check.Path(at+".source", m.Source), check.Path(at+".target", m.Target)); err != nil {
			return err
		}
		same := func(other Mount) bool { return other.Target == m.Target }
		if m.Target == "/" || slices.ContainsFunc(mounts[:i], same) {
			return fault.Field(at+".target", "%.120q is / or taken by another mount: choose another place", m.Target)
		}
	}
	return nil
}
