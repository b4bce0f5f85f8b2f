package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"cairn/sandbox/caps"
	"cairn/sandbox/cgroup"
	"cairn/sandbox/hand"
)

// Backend makes sandboxes of one kind.
type Backend interface {
	Name() string
	Probe(ctx context.Context) Capabilities
	Prepare(ctx context.Context, spec Spec) (*Instance, error)
}

// Capabilities is what this host can do, found out by doing it.
type Capabilities = caps.Capabilities

// Options of the native backend. The zero value is what `make build` needs.
type Options struct {
	HandPath string // the hand program as a file; empty takes the embedded one
	SlotDir  string // folder of the host-wide slot locks; empty: /run/cairn/slots, or below the user's temporary folder
	UIDBase  int    // first id of the uid ranges; 0: the "cairn" entry of /etc/subuid, else 1,000,000,000
	Slots    int    // number of uid ranges, 65,536 ids each; 0: 256
	Parent   string // parent of the control groups; empty: cairn
}

// Native is the backend of Linux namespaces. It is safe for concurrent use.
type Native struct {
	options Options
	omit    []Control    // left out, by the tests only; a release hand refuses it
	tree    *cgroup.Tree // set by the tests only; nil: as Detect finds

	mu   sync.Mutex
	hand *os.File // sealed program, made at the first use
	kept kept
}

var _ Backend = (*Native)(nil)

// NewNative gives the backend; nothing is touched before the first use.
func NewNative(o Options) *Native {
	if o.SlotDir == "" {
		o.SlotDir = "/run/cairn/slots"
		if os.Geteuid() != 0 {
			o.SlotDir = filepath.Join(os.TempDir(), fmt.Sprintf("cairn-%d", os.Geteuid()), "slots")
		}
	}
	if o.Parent == "" {
		o.Parent = "cairn"
	}
	return &Native{options: o}
}

// Name is "native".
func (n *Native) Name() string { return "native" }

// program gives the path of the sealed hand.
func (n *Native) program() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hand == nil {
		b, err := n.load()
		if err != nil {
			return "", err
		}
		if n.hand, err = hand.Seal(b); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("/proc/self/fd/%d", n.hand.Fd()), nil
}

func (n *Native) load() ([]byte, error) {
	if n.options.HandPath == "" {
		return hand.Embedded()
	}
	b, err := os.ReadFile(n.options.HandPath)
	if err != nil {
		return nil, fmt.Errorf("hand program: %w", err)
	}
	return b, nil
}

// Close frees the sealed program and what was kept. Instances are not touched.
func (n *Native) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept.close()
	if n.hand == nil {
		return nil
	}
	err := n.hand.Close()
	n.hand = nil
	return err
}

// Probe tries every part by itself; each has its own time-out.
func (n *Native) Probe(ctx context.Context) Capabilities {
	exe, err := n.program()
	if err != nil {
		return caps.Failed(err)
	}
	return caps.Probe(ctx, exe)
}

func (n *Native) omits(c Control) bool { return slices.Contains(n.omit, c) }

// ranged tells whether uid ranges can be mapped: as root.
func (n *Native) ranged() bool { return os.Geteuid() == 0 && !n.omits(UIDRange) }

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// groupOf gives the control group of a sandbox id, not made yet.
func (n *Native) groupOf(id string) (*cgroup.Tree, *cgroup.Group, error) {
	tree := n.tree
	if tree == nil {
		var err error
		if tree, err = cgroup.Detect(); err != nil {
			return nil, nil, err
		}
	}
	g, err := tree.Open("/" + n.options.Parent + "/" + id)
	return tree, g, err
}
