package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestGoModule works on a Go module offline, with the host's tool chain as a
// declared mount.
func TestGoModule(t *testing.T) {
	needRoot(t)
	out, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	goroot := strings.TrimSpace(string(out))
	lower := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example.org/sum\n\ngo 1.26\n",
		"sum.go":      "// Package sum adds.\npackage sum\n\n// Of adds.\nfunc Of(a, b int) int { return a + b }\n",
		"sum_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestOf(t *testing.T) {\n\tif Of(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n",
	} {
		must(t, os.WriteFile(filepath.Join(lower, name), []byte(text), 0o600))
	}
	before := fingerprint(t, lower)
	i := prepare(t, func(s *Spec) {
		s.Lowers = []string{lower}
		s.Mounts = []Mount{{goroot, "/usr/local/go"}}
		s.Env = map[string]string{
			"GOROOT": "/usr/local/go", "PATH": "/usr/local/go/bin:/usr/bin:/bin", "GOPROXY": "off", "GOFLAGS": "-mod=mod",
			"GOCACHE": "/tmp/gocache", "GOPATH": "/home/agent/go", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local",
		}
	})
	for _, c := range []string{"go vet ./...", "go test ./..."} {
		r, err := i.Exec(context.Background(), ExecRequest{Shell: c, Timeout: 5 * time.Minute})
		must(t, err)
		if r.ExitCode == nil || *r.ExitCode != 0 {
			t.Fatalf("%s: %+v\n%s%s", c, r.ExitCode, r.Stdout.Text(), r.Stderr.Text())
		}
		t.Logf("%s: %v %s (%s)", c, r.Duration.Round(time.Millisecond), r.Stdout.Text(), runtime.Version())
	}
	if fingerprint(t, lower) != before {
		t.Error("the module changed")
	}
}
