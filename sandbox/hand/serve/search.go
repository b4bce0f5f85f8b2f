package serve

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"cairn/sandbox/hand/wire"
)

const (
	maxVisited = 500_000  // entries of one search
	maxLine    = 64 << 10 // bytes of a line that are matched
	maxText    = 500      // bytes of a line that are returned
)

// search collects results and stops at the limit.
type search struct {
	server  *Server
	request *request
	limit   uint64
	done    wire.FileDone
	pending wire.Encoder
	visited int
}

var errEnough = errors.New("enough")

func (w *search) add(m wire.Match) error {
	if w.done.Count == w.limit {
		w.done.Truncated = true
		return errEnough
	}
	w.done.Count++
	m.Append(&w.pending)
	if len(w.pending.B) >= wire.Chunk {
		return w.flush()
	}
	return nil
}

func (w *search) flush() error {
	if !w.server.send(w.request, wire.StreamOutput, w.pending.B) {
		return fault(wire.CodeIO, "cancelled")
	}
	w.pending.B = w.pending.B[:0]
	return nil
}

// walk calls f for every entry below root, in the order of names, and follows
// no link. Folders that cannot be read are passed over.
func (w *search) walk(root string, hidden bool, f func(name, rel string, d fs.DirEntry) error) (wire.FileDone, error) {
	dir, _, err := open(root)
	if err != nil {
		return w.done, err
	}
	dir.Close()
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if w.visited++; w.visited > maxVisited {
			w.done.Truncated = true
			return errEnough
		}
		switch {
		case w.request.cancelled.Load():
			return fault(wire.CodeIO, "cancelled")
		case err != nil || name == "/proc" || !hidden && d.IsDir() && d.Name() == ".git" && name != root:
			return fs.SkipDir
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		return f(name, rel, d)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return w.done, err
	}
	return w.done, w.flush()
}

func (s *Server) glob(q *request, m wire.File) (wire.FileDone, error) {
	pattern := strings.Split(m.Old, "/")
	if err := checkPattern(pattern); err != nil {
		return wire.FileDone{}, err
	}
	w := &search{server: s, request: q, limit: m.Limit}
	return w.walk(m.Path, strings.Contains(m.Old, ".git"), func(_, rel string, d fs.DirEntry) error {
		if rel == "." || !matchPath(pattern, strings.Split(rel, "/")) {
			return nil
		}
		return w.add(wire.Match{Path: rel})
	})
}

func (s *Server) grep(q *request, m wire.File) (wire.FileDone, error) {
	re, err := regexp.Compile(m.Old)
	if err != nil {
		return wire.FileDone{}, fault(wire.CodeBadPattern, "%v", err)
	}
	only := strings.Split(m.New, "/")
	if err := checkPattern(only); err != nil {
		return wire.FileDone{}, err
	}
	w := &search{server: s, request: q, limit: m.Limit}
	return w.walk(m.Path, false, func(name, rel string, d fs.DirEntry) error {
		if !d.Type().IsRegular() || m.New != "" && !wanted(only, rel) {
			return nil
		}
		if rel == "." {
			rel = path.Base(name)
		}
		return w.grepFile(re, name, rel)
	})
}

// wanted matches a name alone when the pattern has no slash.
func wanted(pattern []string, rel string) bool {
	if len(pattern) == 1 {
		rel = path.Base(rel)
	}
	return matchPath(pattern, strings.Split(rel, "/"))
}

func (w *search) grepFile(re *regexp.Regexp, name, rel string) error {
	f, _, err := openRegular(name)
	if err != nil {
		return nil // gone meanwhile or not readable: nothing to find
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, maxLine)
	if head, _ := r.Peek(8000); bytes.IndexByte(head, 0) >= 0 {
		return nil // binary
	}
	for line := uint64(1); ; line++ {
		b, err := readLine(r)
		if len(b) > 0 || err == nil {
			text := bytes.TrimRight(b, "\r\n")
			if re.Match(text) {
				m := wire.Match{Path: rel, Line: line, Text: string(text[:min(len(text), maxText)])}
				if err := w.add(m); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return nil
		}
		if w.request.cancelled.Load() {
			return fault(wire.CodeIO, "cancelled")
		}
	}
}

// readLine gives the beginning of a line and skips what is too long.
func readLine(r *bufio.Reader) ([]byte, error) {
	b, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return b, err
	}
	head := bytes.Clone(b)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head, err
}

func checkPattern(segments []string) error {
	for _, s := range segments {
		if _, err := path.Match(s, ""); err != nil {
			return fault(wire.CodeBadPattern, "%q: %v", strings.Join(segments, "/"), err)
		}
	}
	return nil
}

// matchPath matches segment by segment; "**" stands for any number of them.
// Only the last "**" is ever taken back, so the time is bounded.
func matchPath(pattern, name []string) bool {
	p, n, starP, starN := 0, 0, -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == "**" {
			starP, starN = p, n
			p++
			continue
		}
		if p < len(pattern) {
			if ok, _ := path.Match(pattern[p], name[n]); ok {
				p, n = p+1, n+1
				continue
			}
		}
		if starP < 0 {
			return false
		}
		starN++
		p, n = starP+1, starN
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}
