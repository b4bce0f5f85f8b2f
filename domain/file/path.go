package file

import (
	"path"
	"strings"
	"unicode"

	"cairn/domain/check"
	"cairn/domain/fault"
)

// The bounds of a path: they leave room below /workspace in what Linux takes.
const (
	MaxPath  = 1024 // bytes
	MaxName  = 255  // bytes between two slashes
	MaxDepth = 32   // names
)

// CheckPath refuses what cannot be a file below a folder: it must be relative and clean, and say plainly where it
// leads.
func CheckPath(field, value string) error {
	if err := check.Text(field, value, 1, MaxPath); err != nil {
		return err
	}
	if at := strings.IndexFunc(value, unicode.IsControl); at >= 0 {
		return fault.Field(field, "control character at byte %d of the path: rename the file", at)
	}
	if strings.Contains(value, `\`) {
		return fault.Field(field, "%.120q holds a backslash: separate folders by /, and rename what has one in its name", value)
	}
	if path.IsAbs(value) || path.Clean(value) != value || value == "." || value == ".." || strings.HasPrefix(value, "../") {
		return fault.Field(field, "%.120q is not a relative clean path: give it without . and .., double slashes, and a slash at its ends", value)
	}
	names := strings.Split(value, "/")
	if len(names) > MaxDepth {
		return fault.Field(field, "%.120q is %d folders deep, the limit is %d: move it up", value, len(names), MaxDepth)
	}
	for _, name := range names {
		if len(name) > MaxName {
			return fault.Field(field, "a name of %d bytes in the path, the limit is %d: shorten it", len(name), MaxName)
		}
	}
	return nil
}

// CheckFolder is CheckPath, or empty for the whole space.
func CheckFolder(field, value string) error {
	if value == "" {
		return nil
	}
	return CheckPath(field, value)
}

// Parents are the folders above a path, the outermost first.
func Parents(value string) []string {
	var all []string
	for i := range len(value) {
		if value[i] == '/' {
			all = append(all, value[:i])
		}
	}
	return all
}
