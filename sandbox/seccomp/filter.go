// Package seccomp makes the system call filter of a sandbox: a deny list with
// everything unknown refused, assembled for one architecture. It imports the
// standard library and golang.org/x/net/bpf; which calls are refused stands in
// policy.go. Package load installs it.
//
//	call of another architecture, or of x32 ----> the process is killed
//	number above the highest reviewed, clone3 --> ENOSYS: programs fall back
//	denied, whatever its arguments -------------> EPERM
//	judged by its arguments --------------------> EPERM or allowed
//	everything else ----------------------------> allowed
//
// The program is made by the worker and travels as bytes, so that the worker
// can compare what the kernel gives back with what it asked for.
package seccomp

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"golang.org/x/net/bpf"
)

// Return values of a filter, from linux/seccomp.h.
const (
	KillProcess = 0x80000000
	Errno       = 0x00050000
	Allow       = 0x7fff0000
	eperm       = 1
	enosys      = 38
)

// Offsets in struct seccomp_data. The low half of an argument is the one that
// counts: both architectures here are little endian, and every judged argument
// is an int or is cut to one by the kernel.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// instructionSize is that of struct sock_filter.
const instructionSize = 8

// Program is an assembled filter.
type Program struct {
	code []bpf.RawInstruction
}

// Options change the policy for what a host needs.
type Options struct {
	// Clone3 allows clone3, whose flags a filter cannot see: version 2 of the
	// control groups needs it to start a program in its group. Namespaces are
	// then refused by the bound of the user namespace and for want of rights.
	Clone3 bool
}

// New assembles the filter for an architecture, named as runtime.GOARCH.
func New(goarch string, o Options) (*Program, error) {
	a, ok := archs[goarch]
	if !ok {
		return nil, fmt.Errorf("seccomp: no policy for architecture %q: run on amd64 or arm64", goarch)
	}
	code, err := bpf.Assemble(program(a, o))
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	return &Program{code: code}, nil
}

func program(a arch, o Options) []bpf.Instruction {
	p := []bpf.Instruction{
		load(offArch),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: a.audit, SkipTrue: 1},
		ret(KillProcess),
		load(offNumber),
	}
	if a.x32 != 0 {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: a.x32, SkipTrue: 1}, ret(KillProcess))
	}
	p = append(p, bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: highest, SkipTrue: 1}, ret(Errno|enosys))
	p = append(p, bpf.JumpIf{Cond: bpf.JumpLessThan, Val: a.gapFirst, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: a.gapLast, SkipTrue: 1}, ret(Errno|enosys))
	for _, c := range calls {
		n := c.number(a)
		if n == absent || c.name == "clone3" && o.Clone3 {
			continue
		}
		block := c.block()
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(n), SkipTrue: uint8(len(block))})
		p = append(p, block...)
	}
	return append(p, ret(Allow))
}

// block decides one call. It always returns.
func (c call) block() []bpf.Instruction {
	if c.rule == nil {
		return []bpf.Instruction{ret(Errno | c.errno)}
	}
	var p []bpf.Instruction
	for _, t := range c.rule {
		p = append(p, t.code()...)
	}
	return append(p, ret(Allow))
}

// code falls through when the argument passes.
func (t test) code() []bpf.Instruction {
	p := []bpf.Instruction{load(offArgs + 8*uint32(t.arg))}
	if t.when != nil {
		w := *t.when
		body := test{arg: t.arg, mask: t.mask, allowed: t.allowed, denied: t.denied}.code()
		return append([]bpf.Instruction{load(offArgs + 8*uint32(w.arg)), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: w.value, SkipTrue: uint8(len(body))}}, body...)
	}
	if t.mask != 0 {
		p = append(p, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: t.mask})
	}
	for _, v := range t.denied {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, ret(Errno|eperm))
	}
	if t.denied != nil {
		return p
	}
	for i, v := range t.allowed {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(t.allowed) - i)})
	}
	return append(p, ret(Errno|eperm))
}

func load(off uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: off, Size: 4} }

func ret(v uint32) bpf.Instruction { return bpf.RetConstant{Val: v} }

// Bytes gives the program as the kernel takes it, in this machine's byte
// order: an array of struct sock_filter.
func (p *Program) Bytes() []byte {
	b := make([]byte, 0, len(p.code)*instructionSize)
	for _, i := range p.code {
		b = binary.NativeEndian.AppendUint16(b, i.Op)
		b = append(b, i.Jt, i.Jf)
		b = binary.NativeEndian.AppendUint32(b, i.K)
	}
	return b
}

// Len is the number of instructions; the kernel takes 4096.
func (p *Program) Len() int { return len(p.code) }

// Hash names a program by the SHA-256 of its bytes.
func Hash(program []byte) string {
	sum := sha256.Sum256(program)
	return hex.EncodeToString(sum[:])
}
