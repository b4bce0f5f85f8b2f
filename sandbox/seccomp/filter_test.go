package seccomp

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/bpf"
)

// judged is the policy said directly, beside the assembler.
func judged(goarch string, o Options, d data) uint32 {
	a := archs[goarch]
	if d.arch != a.audit || a.x32 != 0 && d.number&a.x32 != 0 {
		return KillProcess
	}
	if d.number > highest || d.number >= a.gapFirst && d.number <= a.gapLast {
		return Errno | enosys
	}
	i := slices.IndexFunc(calls, func(c call) bool { return c.number(a) == int(d.number) })
	if i < 0 || calls[i].name == "clone3" && o.Clone3 {
		return Allow
	}
	if calls[i].rule == nil {
		return Errno | calls[i].errno
	}
	for _, t := range calls[i].rule {
		v := uint32(d.args[t.arg])
		if t.mask != 0 {
			v &= t.mask
		}
		applies := t.when == nil || uint32(d.args[t.when.arg]) == t.when.value
		if applies && (t.denied != nil && slices.Contains(t.denied, v) || t.denied == nil && !slices.Contains(t.allowed, v)) {
			return Errno | eperm
		}
	}
	return Allow
}

var programs sync.Map

func assembled(t *testing.T, goarch string, o Options) []bpf.RawInstruction {
	t.Helper()
	type key struct {
		goarch string
		o      Options
	}
	if code, ok := programs.Load(key{goarch, o}); ok {
		return code.([]bpf.RawInstruction)
	}
	p, err := New(goarch, o)
	if err != nil {
		t.Fatal(err)
	}
	programs.Store(key{goarch, o}, p.code)
	return p.code
}

func check(t *testing.T, goarch string, o Options, d data) {
	t.Helper()
	got, err := interpret(assembled(t, goarch, o), d)
	if want := judged(goarch, o, d); err != nil || got != want {
		t.Fatalf("%s %+v %+v: %#x, want %#x (%v)", goarch, o, d, got, want, err)
	}
}

// TestEveryNumber asks for every call with every argument that a rule names.
func TestEveryNumber(t *testing.T) {
	values := []uint64{0, 1, 2, 3, 5, 6, 10, 16, 17, 38, 40, 58, 0x5412, 0x541c, 0x5401, 0x10000000, 0x02000000, 0x80, 0x8000003, 0xffffffff, 1 << 63}
	for goarch := range archs {
		for number := range uint32(600) {
			for _, v := range values {
				check(t, goarch, Options{}, data{number: number, arch: archs[goarch].audit, args: [6]uint64{v, values[number%7], 0}})
				check(t, goarch, Options{Clone3: true}, data{number: number, arch: archs[goarch].audit, args: [6]uint64{2, v, v}})
			}
		}
		for _, d := range []data{{number: 0, arch: 0x40000003}, {number: 0x40000000, arch: archs[goarch].audit}, {number: 0xffffffff, arch: archs[goarch].audit}} {
			check(t, goarch, Options{}, d)
		}
	}
}

func TestRandomCalls(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		for goarch, a := range archs {
			d := data{number: r.Uint32N(512), arch: a.audit, ip: r.Uint64()}
			if r.IntN(8) == 0 {
				d.number, d.arch = r.Uint32(), r.Uint32()
			}
			for i := range d.args {
				d.args[i] = r.Uint64() >> r.IntN(64)
			}
			check(t, goarch, Options{}, d)
		}
	}
}

// FuzzFilter compares the assembled program with the policy on any call.
func FuzzFilter(f *testing.F) {
	f.Add(uint32(41), uint32(0xc000003e), uint64(2), uint64(3), uint64(0))
	f.Add(uint32(56), uint32(0xc000003e), uint64(0x10000000), uint64(0), uint64(0))
	f.Add(uint32(16), uint32(0xc000003e), uint64(0), uint64(0x5412), uint64(0))
	f.Fuzz(func(t *testing.T, number, arch uint32, x, y, z uint64) {
		for goarch := range archs {
			for _, o := range []Options{{}, {Clone3: true}} {
				check(t, goarch, o, data{number: number, arch: arch, args: [6]uint64{x, y, z}})
			}
		}
	})
}

func TestProgramIsWhatTheKernelTakes(t *testing.T) {
	p, err := New("amd64", Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := p.Bytes()
	if len(b) != 8*p.Len() || p.Len() > 4096 || binary.NativeEndian.Uint16(b) != 0x20 || binary.NativeEndian.Uint32(b[4:]) != offArch {
		t.Errorf("%d bytes, %d instructions, %x", len(b), p.Len(), b[:8])
	}
	for i, c := range p.code { // no jump leads out of the program
		if end := i + 1 + int(max(c.Jt, c.Jf)); c.Op&7 == 5 && end >= p.Len() {
			t.Errorf("instruction %d jumps to %d of %d", i, end, p.Len())
		}
	}
	if Hash(b) == Hash(b[8:]) || len(Hash(b)) != 64 {
		t.Error("hash")
	}
	if _, err := New("riscv64", Options{}); err == nil {
		t.Error("an architecture without a policy was accepted")
	}
}

// numbers reads the system call table of golang.org/x/sys.
func numbers(t *testing.T, goarch string) map[string]int {
	t.Helper()
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "zsysnum_linux_"+goarch+".go"))
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]int{}
	for _, f := range regexp.MustCompile(`SYS_([A-Z0-9_]+)\s*=\s*(\d+)`).FindAllStringSubmatch(string(b), -1) {
		m[strings.ToLower(f[1])], _ = strconv.Atoi(f[2])
	}
	return m
}

// TestNumbers compares the policy's numbers with the tables that others made,
// and sees that no reviewed call is missing from them.
func TestNumbers(t *testing.T) {
	for goarch, a := range archs {
		table := numbers(t, goarch)
		for _, c := range calls {
			name := c.name
			if n, ok := table[name]; ok != (c.number(a) != absent) || ok && n != c.number(a) {
				t.Errorf("%s %s: %d, the table says %d (%v)", goarch, c.name, c.number(a), n, ok)
			}
		}
		all := slices.Collect(maps.Values(table))
		for n := a.gapFirst; n <= a.gapLast; n++ {
			if slices.Contains(all, int(n)) {
				t.Errorf("%s: %d is a call, not a gap", goarch, n)
			}
		}
		if table["file_setattr"] != highest {
			t.Errorf("%s: file_setattr is %d", goarch, table["file_setattr"])
		}
	}
}
