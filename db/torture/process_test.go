package torture

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cairn/db/dbtest"
)

// crew starts processes and gathers what they say.
type crew struct {
	t      *testing.T
	base   *dbtest.Database
	seed   uint64
	anvils int

	mu       sync.Mutex
	began    time.Time
	acks     []Ack
	warnings []string
	killed   map[string]bool
	frozen   map[string]bool
	reading  sync.WaitGroup
	members  []*member
}

type member struct {
	name string
	cmd  *exec.Cmd
}

func (c *crew) start(n int) *member {
	c.t.Helper()
	name := fmt.Sprintf("p%d", n)
	text, err := json.Marshal(child{
		Plan: Plan{Process: name, Writers: 8, Anvils: c.anvils, Seed: c.seed*1000 + uint64(n), Pause: 12 * time.Millisecond},
		URL:  c.base.URL(dbtest.Server), KeyDir: c.base.KeyDir, BlobDir: c.base.BlobDir,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	diagnostics, err := cmd.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	m := &member{name: name, cmd: cmd}
	c.members = append(c.members, m)
	c.reading.Go(func() { c.lines(out, c.ack) })
	c.reading.Go(func() { c.lines(diagnostics, func(line string) { c.warnings = append(c.warnings, name+": "+line) }) })
	return m
}

func (c *crew) lines(r io.Reader, take func(string)) {
	for scanner := bufio.NewScanner(r); scanner.Scan(); {
		c.mu.Lock()
		take(scanner.Text())
		c.mu.Unlock()
	}
}

func (c *crew) ack(line string) {
	if !strings.HasPrefix(line, "ack ") {
		return // of the testing package
	}
	a, err := ParseAck(line)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.acks = append(c.acks, a)
}

func (c *crew) signal(m *member, s syscall.Signal) {
	c.t.Helper()
	c.t.Logf("%v to %s after %v", s, m.name, time.Since(c.began).Round(time.Millisecond))
	switch s {
	case syscall.SIGKILL:
		c.killed[m.name] = true
	case syscall.SIGSTOP:
		c.frozen[m.name] = true
	}
	if err := m.cmd.Process.Signal(s); err != nil {
		c.t.Errorf("%v to %s: %v", s, m.name, err)
	}
}

// end asks all for an orderly end and waits until everything that they said was read.
func (c *crew) end() {
	c.t.Helper()
	for _, m := range c.members {
		if !c.killed[m.name] {
			c.signal(m, syscall.SIGTERM)
		}
	}
	c.reading.Wait()
	for _, m := range c.members {
		err := m.cmd.Wait()
		if status := m.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() && status.Signal() == syscall.SIGTERM {
			continue // it had not even begun
		}
		if err != nil && !c.killed[m.name] {
			c.t.Errorf("%s: %v: %s", m.name, err, strings.Join(c.warnings, "\n"))
		}
	}
}

// abandon ends what a failed test left.
func (c *crew) abandon() {
	for _, m := range c.members {
		if m.cmd.ProcessState == nil {
			m.cmd.Process.Kill()
			m.cmd.Wait()
		}
	}
}
