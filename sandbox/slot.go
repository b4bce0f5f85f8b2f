package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"cairn/sandbox/cgroup"
	"cairn/sandbox/layer"
)

const (
	defaultBase  = 1_000_000_000
	defaultSlots = 256
)

// slot is one uid range, locked for one live sandbox of this host. Slot 0 is
// never given out: its ids own the stored uppers, so that no process has them.
type slot struct {
	lock *os.File
	base int
}

// ranges is where the slots lie.
type ranges struct {
	dir   string
	base  int
	slots int
}

// takeSlot locks the first free range. A range whose last cgroup still has
// processes (its worker died a moment ago) is passed over.
func (r ranges) take(tree *cgroup.Tree, group string) (*slot, error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("slot folder: %w", err)
	}
	for n := 1; n <= r.slots; n++ {
		f, err := os.OpenFile(filepath.Join(r.dir, "slot-"+strconv.Itoa(n)), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("slot %d: %w", n, err)
		}
		free, err := claim(f, tree)
		if err == nil && free {
			err = record(f, group)
		}
		if err == nil && free {
			return &slot{lock: f, base: r.base + n*layer.RangeSize}, nil
		}
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("slot %d: %w", n, err)
		}
	}
	return nil, fmt.Errorf("%w: all %d in %s are locked", ErrNoSlot, r.slots, r.dir)
}

func claim(f *os.File, tree *cgroup.Tree) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var b [512]byte
	n, _ := f.ReadAt(b[:], 0)
	last := strings.TrimSpace(string(b[:n]))
	if last == "" || tree == nil {
		return true, nil
	}
	g, err := tree.Open(last)
	if err != nil {
		return false, err
	}
	return g.Empty()
}

func record(f *os.File, group string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(group), 0)
	return err
}

// release gives the range back. Everything that had its ids must be gone.
func (s *slot) release() error {
	return errors.Join(s.lock.Truncate(0), s.lock.Close())
}

// findRanges decides where slots lie: as configured, else the entry of
// "cairn" in /etc/subuid, else from 1,000,000,000 on. Ranges that the host
// gave to someone else are refused.
func findRanges(o Options) (ranges, error) {
	r := ranges{dir: o.SlotDir, base: o.UIDBase, slots: o.Slots}
	if r.slots == 0 {
		r.slots = defaultSlots
	}
	entries := []subid{}
	for _, name := range []string{"/etc/subuid", "/etc/subgid"} {
		list, err := readSubids(name)
		if err != nil {
			return r, err
		}
		entries = append(entries, list...)
	}
	if r.base == 0 {
		r.base = defaultBase
		for _, e := range entries {
			if e.owner == "cairn" && e.count >= 2*layer.RangeSize {
				r.base, r.slots = e.start, min(r.slots, e.count/layer.RangeSize-1)
				break
			}
		}
	}
	end := r.base + (r.slots+1)*layer.RangeSize
	for _, e := range entries {
		if e.owner != "cairn" && r.base < e.start+e.count && e.start < end {
			return r, fmt.Errorf("uid ranges %d to %d overlap those of %q in /etc/subuid or /etc/subgid (%d, %d ids); choose another base", r.base, end-1, e.owner, e.start, e.count)
		}
	}
	return r, nil
}

type subid struct {
	owner        string
	start, count int
}

func readSubids(name string) ([]subid, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []subid
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		p := strings.Split(strings.TrimSpace(sc.Text()), ":")
		if len(p) != 3 {
			continue
		}
		start, err1 := strconv.Atoi(p[1])
		count, err2 := strconv.Atoi(p[2])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, subid{owner: p[0], start: start, count: count})
	}
	return list, sc.Err()
}
