package file

import "cairn/domain/event"

// Stored says that the path has this content now.
type Stored struct {
	Path       event.Sealed  `json:"path"`       // relative, with / between folders
	Digest     event.Sealed  `json:"sha256"`     // hexadecimal SHA-256 of the content
	Content    event.Content `json:"content"`    // in the blob store
	MediaType  string        `json:"media_type"` // as the content looks, such as text/plain
	Executable bool          `json:"executable"` // it begins with #!
}

// Kind implements event.Event.
func (Stored) Kind() string { return "file.stored" }

// Removed says that the space has no file at the path any more.
type Removed struct{}

// Kind implements event.Event.
func (Removed) Kind() string { return "file.removed" }
