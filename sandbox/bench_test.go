package sandbox

import (
	"context"
	"os/exec"
	"testing"
)

// BenchmarkForkExec is the floor: /bin/true to its exit.
func BenchmarkForkExec(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkColdStart prepares a sandbox, canary included, runs /bin/true in
// it and closes it.
func BenchmarkColdStart(b *testing.B) {
	n := newNative(b)
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
