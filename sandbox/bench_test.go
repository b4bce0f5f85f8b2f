package sandbox

import (
	"context"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"cairn/sandbox/baseline"
)

// BenchmarkForkExec is the floor: /bin/true to its exit.
func BenchmarkForkExec(b *testing.B) {
	begin := processorTime(b)
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processorTime(b)-begin)/float64(b.N)/1000, "cpu_us")
}

// BenchmarkBubblewrap is what others start it with.
func BenchmarkBubblewrap(b *testing.B) {
	begin := processorTime(b)
	for b.Loop() {
		if err := baseline.Bubblewrap(); err != nil {
			b.Skip(err)
		}
	}
	b.ReportMetric(float64(processorTime(b)-begin)/float64(b.N)/1000, "cpu_us")
}

// processorTime is what this process and its dead children used, nanoseconds:
// unlike the time on the wall it does not depend on what else the machine does.
func processorTime(b *testing.B) int64 {
	var sum int64
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += u.Utime.Nano() + u.Stime.Nano()
	}
	return sum
}

// BenchmarkColdStart prepares a sandbox, canary included, runs /bin/true in
// it and closes it.
func BenchmarkColdStart(b *testing.B) {
	n := newNative(b)
	begin := processorTime(b)
	for b.Loop() {
		i, err := n.Prepare(context.Background(), testSpec(b))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := i.Exec(context.Background(), ExecRequest{Argv: []string{"/bin/true"}}); err != nil {
			b.Fatal(err)
		}
		if err := i.Close(); err != nil {
			b.Fatal(err)
		}
		for _, p := range i.Report().Phases {
			phases[p.Name] += p.Microseconds
		}
	}
	b.ReportMetric(float64(processorTime(b)-begin)/float64(b.N)/1000, "cpu_us")
	for name, sum := range phases {
		b.ReportMetric(float64(sum)/float64(b.N), name+"_us")
		delete(phases, name)
	}
}

var phases = map[string]int64{}

// BenchmarkWarmExec runs /bin/true in a live sandbox.
func BenchmarkWarmExec(b *testing.B) {
	i := prepare(b, nil)
	for b.Loop() {
		if _, err := i.Exec(context.Background(), ExecRequest{Argv: []string{"/bin/true"}}); err != nil {
			b.Fatal(err)
		}
	}
}
