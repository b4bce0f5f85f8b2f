package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/note"
)

// File is the checkpoint file: every signed checkpoint, outside the database. It holds one JSON object per
// line, {"note": "..."}, and is only ever appended to.
//
// Several processes may append without a lock, so that a frozen one delays nobody: each append is a single
// write in append mode, which a local file system does not mix with others. A line begins with its newline
// instead of ending with it; so what a power cut or a full disk tore stands alone, and the same checkpoint
// is appended again, whole. The same line twice means nothing.
type File struct{ path string }

// tailSize is how much of the file's end is read to find its last checkpoint: some thirty lines. Should they all
// be old ones, repeated by a process that was frozen, the newer ones are repeated too, which means nothing.
const tailSize = 8 << 10

// fileLine is one line of the file.
type fileLine struct {
	Note string `json:"note"`
}

// encodeLine is the only form of a line that is accepted when reading.
func encodeLine(signed string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fileLine{signed}); err != nil {
		panic(err) // a struct of one string
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// decodeLine returns the note of a whole line; false for a torn or altered one.
func decodeLine(line []byte) (string, bool) {
	var l fileLine
	if err := json.Unmarshal(line, &l); err != nil || !bytes.Equal(encodeLine(l.Note), line) {
		return "", false
	}
	return l.Note, true
}

// append writes notes behind what is there, and returns once they are on disk.
func (f File) append(notes ...string) error {
	var b bytes.Buffer
	for _, signed := range notes {
		b.WriteByte('\n')
		b.Write(encodeLine(signed))
	}
	_, err := os.Stat(f.path)
	created := errors.Is(err, fs.ErrNotExist)
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("checkpoint file: %w", err)
	}
	_, werr := file.Write(b.Bytes())
	if err := errors.Join(werr, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("checkpoint file %s: %w", f.path, err)
	}
	if created {
		folder, err := os.Open(filepath.Dir(f.path))
		if err != nil {
			return fmt.Errorf("checkpoint file: %w", err)
		}
		return errors.Join(folder.Sync(), folder.Close())
	}
	return nil
}

// last returns the newest checkpoint of the file; nil when it has none yet.
func (f File) last(verifier note.Verifier) (*Checkpoint, error) {
	tail, whole, err := f.tail()
	if err != nil {
		return nil, fmt.Errorf("checkpoint file: %w", err)
	}
	var newest *Checkpoint
	for _, line := range bytes.Split(tail, []byte("\n")) {
		signed, ok := decodeLine(line)
		if !ok {
			continue // the cut at the front of the tail, or torn
		}
		c, err := openCheckpoint(signed, verifier)
		if err != nil {
			return nil, fmt.Errorf("checkpoint file %s: %w", f.path, err)
		}
		if newest == nil || newest.before(c) {
			newest = &c
		}
	}
	if newest == nil && !whole {
		return nil, fmt.Errorf("checkpoint file %s: no checkpoint in its last %d bytes: it was overwritten; run 'cairn log verify'", f.path, tailSize)
	}
	return newest, nil
}

// tail reads the end of the file, and tells whether that is all of it. No file is an empty file.
func (f File) tail() ([]byte, bool, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, false, err
	}
	from := max(0, size-tailSize)
	tail, err := io.ReadAll(io.NewSectionReader(file, from, size-from))
	return tail, from == 0, err
}

// before reports whether another checkpoint came later in the life of the log.
func (c Checkpoint) before(other Checkpoint) bool {
	if c.Incarnation != other.Incarnation {
		return c.Incarnation < other.Incarnation
	}
	return c.Size < other.Size
}
