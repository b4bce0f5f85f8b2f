package sandbox

import (
	"os"

	"golang.org/x/sys/unix"

	"cairn/sandbox/layer"
	"cairn/sandbox/ns"
)

// trees makes the detached mounts of a sandbox with a uid range.
func (p *preparation) trees() error {
	root, err := p.root()
	if err != nil {
		return refuseBy(ReadonlySystem, err)
	}
	p.plan.Root = ns.Source{FD: p.inherit(root)}
	p.plan.System = ns.Source{FD: -1}
	for _, m := range p.spec.Mounts {
		s := ns.Source{FD: -1}
		if ns.Late(m.Target) {
			if s, err = p.treeOf(m.Source, p.readOnly()); err != nil {
				return refuseBy(ReadonlySystem, err)
			}
		}
		p.plan.Mounts = append(p.plan.Mounts, ns.Bind{Source: s, Target: m.Target})
	}
	if err := p.workspace(); err != nil {
		return refuseBy(OverlayWorkspace, err)
	}
	return nil
}

func (p *preparation) readOnly() layer.Attr {
	return layer.Attr{ReadOnly: !p.native.omits(ReadonlySystem), Recursive: true}
}

func (p *preparation) treeOf(path string, a layer.Attr) (ns.Source, error) {
	f, err := layer.Tree(path, a)
	if err != nil {
		return ns.Source{}, err
	}
	return ns.Source{FD: p.inherit(f)}, nil
}

// workspace makes the run folder's tree, in which stored ids appear as the
// slot's, and one tree for each lower, in which its owner appears as agent.
func (p *preparation) workspace() error {
	m := layer.UpperMap(p.store, p.slot.base)
	id, err := p.idMap(m, m)
	if err != nil {
		return err
	}
	run, err := layer.Tree(p.spec.RunDir, layer.Attr{})
	if err != nil {
		return err
	}
	p.plan.Run = ns.Source{FD: p.inherit(run)}
	if p.plan.Upper, err = p.openIn(run, "upper"); err != nil {
		return err
	}
	if p.plan.Work, err = p.openIn(run, "work"); err != nil {
		return err
	}
	if err := layer.MapIDs(int(run.Fd()), id); err != nil {
		return err
	}
	maps := map[[2]int]*os.File{}
	for _, l := range p.spec.Lowers {
		uid, gid, err := layer.Owner(l)
		if err != nil {
			return err
		}
		owner := [2]int{uid, gid}
		if maps[owner] == nil {
			if maps[owner], err = p.idMap(layer.LowerMap(uid, agentID, p.slot.base), layer.LowerMap(gid, agentID, p.slot.base)); err != nil {
				return err
			}
		}
		s, err := p.treeOf(l, layer.Attr{ReadOnly: true, UserNS: maps[owner]})
		if err != nil {
			return err
		}
		p.plan.Lowers = append(p.plan.Lowers, s)
	}
	return nil
}

func (p *preparation) openIn(dir *os.File, name string) (ns.Source, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return ns.Source{}, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return ns.Source{FD: p.inherit(os.NewFile(uintptr(fd), name))}, nil
}
