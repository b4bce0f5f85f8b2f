package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

const (
	// maxLine bounds a line of the checkpoint file; a checkpoint takes about 300 bytes.
	maxLine = 64 << 10
	// fileWait is how long a checkpoint that was just signed may be on its way to the file.
	fileWait = 2 * time.Second
)

// readFile reads the checkpoints of the file. It may be called again to see what was appended since.
func (v *verification) readFile() error {
	if v.CheckpointFile == "" {
		return nil
	}
	v.report.FileChecked = true
	file, err := os.Open(v.CheckpointFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // an empty one; the database tells whether that can be
	}
	if err != nil {
		return fmt.Errorf("checkpoint file: %w: verify as a user who may read it", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	torn, err := v.readLines(lines)
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return broken("checkpoint file "+v.CheckpointFile, fmt.Sprintf("lines of at most %d bytes", maxLine), "a longer one")
	}
	if err := errors.Join(err, lines.Err()); err != nil {
		return fmt.Errorf("checkpoint file %s: %w", v.CheckpointFile, err)
	}
	v.report.FileTorn = torn
	return nil
}

// fragment is a line that is not a whole checkpoint.
type fragment struct {
	line int
	text []byte
}

// readLines accepts a fragment only where an append was torn: as the last line, or when the whole of it was
// appended again later.
func (v *verification) readLines(lines *bufio.Scanner) (torn bool, err error) {
	var fragments []fragment
	last := 0
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if len(line) == 0 {
			continue
		}
		last = n
		signed, whole := decodeLine(line)
		if !whole {
			text := bytes.TrimRight(line, "\x00") // what a file system may show of a write that was not finished
			fragments = append(fragments, fragment{n, bytes.Clone(text)})
			continue
		}
		fragments = withoutPrefixes(fragments, line)
		m, err := v.marks.open(signed)
		if err != nil {
			return false, broken(fmt.Sprintf("line %d of the checkpoint file", n), "a note signed by the log's key", err)
		}
		if m.line == 0 {
			m.line = n
		}
	}
	for _, f := range fragments {
		if f.line != last {
			return false, broken(fmt.Sprintf("line %d of the checkpoint file", f.line), "a checkpoint", fmt.Sprintf("%.100q", f.text))
		}
	}
	return len(fragments) > 0, nil
}

func withoutPrefixes(fragments []fragment, line []byte) []fragment {
	var rest []fragment
	for _, f := range fragments {
		if !bytes.HasPrefix(line, f.text) {
			rest = append(rest, f)
		}
	}
	return rest
}

// compareFile checks that database and file have the same checkpoints. The file may lack the very last one:
// a process that ended between commit and append leaves that to the next.
func (v *verification) compareFile(ctx context.Context) error {
	if v.CheckpointFile == "" {
		return nil
	}
	for _, m := range v.marks.valid {
		if !m.stored && m.Incarnation == v.report.Incarnation {
			return broken("the database lacks a checkpoint that the file has", fmt.Sprintf("the one of size %d%s", m.Size, m.where()), "none").at(m.Size)
		}
	}
	for began := time.Now(); ; {
		lacks, onlyLast := v.fileLacks()
		v.report.FileLacks = len(lacks)
		if onlyLast {
			return nil
		}
		if time.Since(began) > fileWait || time.Since(lacks[0].At) > fileWait {
			return broken(fmt.Sprintf("the checkpoint file lacks %d checkpoints that the database has", len(lacks)),
				fmt.Sprintf("the one of size %d", lacks[0].Size), "none").at(lacks[0].Size)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		if err := v.readFile(); err != nil { // the database was read later, and a process may be appending
			return err
		}
	}
}

// fileLacks lists what only the database has, and tells whether that is nothing but its last checkpoint.
func (v *verification) fileLacks() ([]*mark, bool) {
	var lacks []*mark
	var last *mark
	for _, m := range v.marks.sorted() {
		if m.stored {
			last = m
		}
		if m.stored && m.line == 0 {
			lacks = append(lacks, m)
		}
	}
	return lacks, len(lacks) == 0 || len(lacks) == 1 && lacks[0] == last
}
