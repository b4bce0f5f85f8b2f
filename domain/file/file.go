// Package file is what the people of a space give to its agents: files with paths, which the workspaces of runs
// begin with.
//
//	one path of a space:  (none) --stored--> stored --removed--> removed
//	                                          |  ^                  |
//	                                    stored +--+------stored------+
//
// Every path has a stream of its own, whose id derives from the space and a keyed hash of the path: two uploads of
// one path meet in one stream, and the log does not tell the path. A new content is a new version. The content lies
// in the blob store, under the space's key.
//
// A run does not look at these streams: it is queued with a manifest, the list of the files as they were when
// its conversation began, so that later uploads change nothing under it.
//
// It may import the standard library and, of domain, event, fault, check and space.
package file

import "cairn/domain/event"

// Kind is the stream kind.
const Kind = "file"

// State is the folded file.
type State struct {
	Stored     bool          `json:"stored"`
	Path       event.Sealed  `json:"path"`
	Digest     event.Sealed  `json:"sha256"`
	Content    event.Content `json:"content"`
	MediaType  string        `json:"media_type"`
	Executable bool          `json:"executable"`
}

// Stream names the file at a path of a space. mac is the edge's HMAC-SHA-256 over the path.
func Stream(space event.ID, mac []byte) event.Ref {
	return Ref(event.NameID(space, append([]byte("cairn/file/1\x00"), mac...)), space)
}

// Ref names a file by its id. It is its own topic.
func Ref(id, space event.ID) event.Ref {
	return event.Ref{Kind: Kind, ID: id, Space: space, Topic: id}
}

// Aggregate describes the noun to the registry.
func Aggregate() event.Aggregate {
	return event.Aggregate{
		Kind:    Kind,
		Events:  []event.Definition{event.Define[Stored](), event.Define[Removed]()},
		Initial: func() any { return State{} },
		Evolve:  func(state any, e event.Event) any { s, _ := state.(State); return Evolve(s, e) },
	}
}
