package change

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// bounded reads what the walk may still read, and stops when its context ends.
type bounded struct {
	*walk
	from io.Reader
}

func (b bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.read >= b.limits.HashSize {
		b.set.Truncated = true
		return 0, errEnough
	}
	n, err := b.from.Read(p)
	b.read += int64(n)
	return n, err
}

// equal compares the contents of a name in two folders. What cannot be read to its end is not equal.
func (w *walk) equal(a, b *os.File, name string) (bool, error) {
	one, _, err := openRegular(a, name)
	if err != nil {
		return false, err
	}
	defer one.Close()
	two, _, err := openRegular(b, name)
	if err != nil {
		return false, err
	}
	defer two.Close()
	from, to := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err1 := io.ReadFull(bounded{w, one}, from)
		m, err2 := io.ReadFull(bounded{w, two}, to)
		if !bytes.Equal(from[:n], to[:m]) {
			return false, nil
		}
		if ended(err1) && ended(err2) {
			return true, nil
		}
		if err := errors.Join(err1, err2); err != nil {
			return false, err
		}
	}
}

func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// content names what a file holds.
type content struct {
	size int64
	sum  [sha256.Size]byte
}

// rename pairs files that are gone with new ones of the same content. Only sizes that are on both sides are read.
func (w *walk) rename(upper *os.File, lowers []*os.File) {
	gone, fresh := map[int64][]*found{}, map[int64][]*found{}
	for _, f := range w.found {
		switch {
		case f.Kind == Deleted && isRegular(f.Before):
			gone[f.Before.Size] = append(gone[f.Before.Size], f)
		case f.Kind == Added && isRegular(f.After):
			fresh[f.After.Size] = append(fresh[f.After.Size], f)
		}
	}
	taken := map[*found]bool{}
	for size, candidates := range gone {
		if len(fresh[size]) == 0 {
			continue
		}
		known := map[content][]*found{}
		for _, f := range candidates {
			if c, ok := w.content(lowers[f.layer], f.real); ok {
				known[c] = append(known[c], f)
			}
		}
		for _, f := range fresh[size] {
			c, ok := w.content(upper, f.real)
			if !ok || len(known[c]) == 0 {
				continue
			}
			was := known[c][0]
			known[c], taken[was] = known[c][1:], true
			f.Kind, f.OldPath, f.Before, f.layer = Renamed, was.Path, was.Before, was.layer
		}
	}
	kept := w.found[:0]
	for _, f := range w.found {
		if !taken[f] {
			kept = append(kept, f)
		}
	}
	w.found = kept
}

// isRegular is for files whose content says something: empty ones are all alike.
func isRegular(s *Side) bool { return s != nil && s.Mode&unix.S_IFMT == unix.S_IFREG && s.Size > 0 }

func (w *walk) content(dir *os.File, path string) (c content, ok bool) {
	f, _, err := openRegular(dir, path)
	if err != nil {
		return c, false
	}
	defer f.Close()
	sum := sha256.New()
	if c.size, err = io.Copy(sum, bounded{w, f}); err != nil {
		return c, false
	}
	sum.Sum(c.sum[:0])
	return c, true
}
