package escape

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of the sandbox in which the suite runs. What a probe takes is more,
// and little for the host.
const (
	Pids     = 64
	Memory   = 96 << 20
	FileSize = 48 << 20
	Disk     = 64 << 20
	TmpSize  = 16 << 20
)

func bounds() []Probe {
	at := func(name, tries string, alone bool, try func() error) Probe {
		return Probe{Name: name, Group: "limits", Tries: tries, Alone: alone, Try: try}
	}
	return []Probe{
		at("many_processes", "have more processes at once than the limit", true, manyProcesses),
		at("much_memory", "use more memory than the limit", true, func() error {
			b := make([]byte, Memory+(48<<20))
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			return nil
		}),
		at("large_file", "write a file larger than the limit", false, func() error { return fill(scratch(), FileSize+(1<<20), 1, 0) }),
		at("full_tmp", "write more into /tmp than the limit", false, func() error { return fill("/tmp", TmpSize+(8<<20), 4, 0) }),
		at("full_disk", "write more into the workspace than the limit, and go on", true, func() error {
			// It stays long enough for anything that looks from time to time.
			return fill(scratch(), Disk+(32<<20), 8, 3*time.Second)
		}),
	}
}

func manyProcesses() error {
	var all []*os.Process
	defer func() {
		for _, p := range all {
			_ = p.Kill()
			_, _ = p.Wait()
		}
	}()
	for range Pids + 16 {
		p, err := os.StartProcess("/bin/sleep", []string{"sleep", "30"}, &os.ProcAttr{})
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	return nil
}

// fill writes size bytes in a number of files and leaves them for a while.
func fill(dir string, size, number int, stay time.Duration) error {
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i)
	}
	for n := range number {
		name := dir + "/fill-" + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(n)
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer os.Remove(name)
		defer f.Close()
		for range (size/number + len(block) - 1) / len(block) {
			if _, err := unix.Write(int(f.Fd()), block); err != nil {
				return err
			}
		}
	}
	time.Sleep(stay)
	return nil
}
