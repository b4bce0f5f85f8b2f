package seccomp

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// data is struct seccomp_data.
type data struct {
	number, arch uint32
	ip           uint64
	args         [6]uint64
}

func (d data) word(off uint32) (uint32, error) {
	switch {
	case off%4 != 0 || off > 60:
		return 0, fmt.Errorf("load at %d", off)
	case off == 0:
		return d.number, nil
	case off == 4:
		return d.arch, nil
	case off < 16:
		return uint32(d.ip >> (8 * (off - 8))), nil
	}
	return uint32(d.args[(off-16)/8] >> (8 * (off % 8))), nil
}

// interpret is a reference interpreter of the instructions that a filter may
// use, written from the kernel's Documentation/networking/filter.rst, after
// the codes of the instructions, not after the package that made them.
func interpret(code []bpf.RawInstruction, d data) (uint32, error) {
	var a uint32
	for pc := 0; pc < len(code); pc++ {
		i := code[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(i.Jt)
			} else {
				pc += int(i.Jf)
			}
		}
		switch i.Op {
		case 0x20: // ld [k]
			v, err := d.word(i.K)
			if err != nil {
				return 0, err
			}
			a = v
		case 0x54: // and #k
			a &= i.K
		case 0x05: // ja k
			pc += int(i.K)
		case 0x15:
			jump(a == i.K)
		case 0x25:
			jump(a > i.K)
		case 0x35:
			jump(a >= i.K)
		case 0x45:
			jump(a&i.K != 0)
		case 0x06: // ret #k
			return i.K, nil
		default:
			return 0, fmt.Errorf("instruction %d has code %#x", pc, i.Op)
		}
	}
	return 0, fmt.Errorf("ran off the end")
}
