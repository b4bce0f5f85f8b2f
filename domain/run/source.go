package run

import (
	"slices"
	"strconv"

	"cairn/domain/check"
	"cairn/domain/fault"
)

// The kinds of sources.
const (
	SourceNone   = "none"   // an empty workspace
	SourceFolder = "folder" // a folder of the host, read-only beneath the workspace
)

// Source is what the workspace starts from. A worker mounts only what lies in a root of that name that it
// was configured with: the path alone gives no right to anything.
type Source struct {
	Kind string `json:"kind"`
	Root string `json:"root"` // name of the root that offers the folder; empty for none
	Path string `json:"path"` // absolute folder on the host; empty for none
}

// Mount is a tool chain that is mounted read-only. A worker mounts only what it was configured to offer.
type Mount struct {
	Source string `json:"source"` // absolute path on the host
	Target string `json:"target"` // absolute path in the sandbox
}

const maxMounts = 32

// CheckSource refuses a source that cannot be meant.
func CheckSource(field string, s Source) error {
	if err := check.OneOf(field+".kind", s.Kind, SourceNone, SourceFolder); err != nil {
		return err
	}
	if s.Kind == SourceFolder {
		return check.First(check.Name(field+".root", s.Root, 64), check.Path(field+".path", s.Path))
	}
	if s.Root != "" || s.Path != "" {
		return fault.Field(field, "kind none has no root and no path: leave them empty, or use kind folder")
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
