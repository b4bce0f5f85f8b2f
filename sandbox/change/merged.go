package change

import (
	"os"

	"golang.org/x/sys/unix"
)

// merged is one folder as the layers beneath show it: the folders of that path in each layer, the topmost first.
type merged struct {
	dirs   []*os.File
	layers []int // which lower each is of
}

func (m *merged) close() {
	for _, f := range m.dirs {
		f.Close()
	}
	m.dirs, m.layers = nil, nil
}

func (m *merged) push(dir *os.File, layer int) {
	m.dirs, m.layers = append(m.dirs, dir), append(m.layers, layer)
}

// source is where a name is shown from: the folder that has it, and which lower that is of. Zero: nothing is shown.
type source struct {
	dir   *os.File
	layer int
}

// lookup finds what a name shows.
func (m *merged) lookup(name string) (unix.Stat_t, source, error) {
	for i, dir := range m.dirs {
		st, ok, err := stat(dir, name)
		switch {
		case err != nil:
			return st, source{}, err
		case ok && isWhiteout(&st):
			return st, source{}, nil
		case ok:
			return st, source{dir, m.layers[i]}, nil
		}
	}
	return unix.Stat_t{}, source{}, nil
}

// enter opens a folder of the folder. A whiteout, another kind of file, or an opaque folder ends what lies beneath.
func (m *merged) enter(name string) (*merged, error) {
	below := &merged{}
	for i, dir := range m.dirs {
		st, ok, err := stat(dir, name)
		if err != nil {
			below.close()
			return nil, err
		}
		if !ok {
			continue
		}
		if !isFolder(&st) {
			break
		}
		f, err := openFolder(dir, name)
		if err != nil {
			below.close()
			return nil, err
		}
		if below.push(f, m.layers[i]); isOpaque(f) {
			break
		}
	}
	return below, nil
}
