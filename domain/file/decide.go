package file

import (
	"strconv"
	"strings"

	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/space"
)

// The bounds of one upload. The edge refuses what is larger before it has read it all.
const (
	MaxFiles = 2000
	MaxBytes = 64 << 20 // of all contents together
)

const macSize = 32

// Decide implements event.Command.
func (c Store) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if err := requireDoer(view, c.Space, meta); err != nil {
		return nil, err
	}
	if len(c.Files) == 0 || len(c.Files) > MaxFiles {
		return nil, fault.Field("files", "%d files in one upload, 1 to %d are possible: divide them", len(c.Files), MaxFiles)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	var changes []event.Change
	for i, f := range c.Files {
		for n, mac := range f.Parents {
			if event.StateOf[State](view, Stream(c.Space, mac)).Stored {
				return nil, clash(i, f.Path, Parents(f.Path)[n])
			}
		}
		stream := Stream(c.Space, f.MAC)
		if event.StateOf[State](view, stream).holds(f) {
			continue
		}
		changes = append(changes, event.Change{Stream: stream, Events: []event.Event{Stored{
			Path: event.Seal(f.Path), Digest: event.Seal(f.Digest), Content: f.Content, MediaType: f.MediaType, Executable: f.Executable,
		}}})
	}
	return changes, nil
}

// holds reports whether the path has this very content.
func (s State) holds(f Upload) bool {
	return s.Stored && s.Digest.Readable() && s.Digest.Text() == f.Digest && s.Path.Text() == f.Path
}

func requireDoer(view event.View, id event.ID, meta event.Meta) error {
	return space.Require(event.StateOf[space.State](view, space.Stream(id)), meta.Actor, space.Doers...)
}

func clash(i int, path, folder string) error {
	return fault.New(fault.Conflict, "file_clash", "%.120q cannot be stored: %.120q is a file, not a folder: remove that one first, or rename (files[%d])", path, folder, i)
}

// check refuses files that are not whole, and paths that exclude each other.
func (c Store) check() error {
	paths, total := make(map[string]bool, len(c.Files)), int64(0)
	for i, f := range c.Files {
		at := "files[" + strconv.Itoa(i) + "]"
		if err := f.check(at, c.Space); err != nil {
			return err
		}
		if paths[f.Path] {
			return fault.Field(at+".path", "%.120q is in the upload twice: send each path once", f.Path)
		}
		paths[f.Path] = true
		if total += f.Content.Size; total > MaxBytes {
			return fault.Field("files", "more than %d bytes in one upload: divide it", MaxBytes)
		}
	}
	for i, f := range c.Files {
		for _, folder := range Parents(f.Path) {
			if paths[folder] {
				return clash(i, f.Path, folder)
			}
		}
	}
	return nil
}

func (f Upload) check(at string, space event.ID) error {
	if err := check.First(CheckPath(at+".path", f.Path), check.Name(at+".media_type", f.MediaType, 128)); err != nil {
		return err
	}
	if len(f.Digest) != 64 || strings.Trim(f.Digest, "0123456789abcdef") != "" {
		return fault.Field(at+".sha256", "want 64 lower-case hexadecimal digits, got %d bytes", len(f.Digest))
	}
	if !f.Content.IsWhole(space) {
		return fault.Field(at+".content", "it is no content of this space: store it first")
	}
	if len(f.Parents) != strings.Count(f.Path, "/") {
		return fault.Field(at+".parents", "want the keyed hash of each of the %d folders above, got %d", strings.Count(f.Path, "/"), len(f.Parents))
	}
	for _, mac := range append([][]byte{f.MAC}, f.Parents...) {
		if len(mac) != macSize {
			return fault.Field(at+".mac", "want the %d bytes of an HMAC-SHA-256, got %d", macSize, len(mac))
		}
	}
	return nil
}

// Decide implements event.Command.
func (c Remove) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if err := requireDoer(view, c.Space, meta); err != nil {
		return nil, err
	}
	stream := Ref(c.File, c.Space)
	if !event.StateOf[State](view, stream).Stored {
		return nil, fault.New(fault.NotFound, "file_not_found", "file %s does not exist in this space: check its id", c.File)
	}
	return []event.Change{{Stream: stream, Events: []event.Event{Removed{}}}}, nil
}
