package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cairn/sandbox/hand/wire"
	"cairn/sandbox/ns"
)

const canaryTimeout = 10 * time.Second

// observe starts a canary on the path that every program of the agent takes,
// and reads in the worker's own /proc what the kernel says about it.
func (p *preparation) observe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, canaryTimeout)
	defer cancel()
	m := wire.Exec{Argv: []string{"cat", "-", ns.LandlockProbe}, Dir: "/", Env: environment(), Stdin: true}
	call, err := p.hand.client.Start(m.Encode())
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { p.hand.client.Lose(fmt.Errorf("canary: %w", ctx.Err())) })
	defer stop()
	// It answers, so its exec is over: what is read now is its last state.
	echo, all := make(chan struct{}), make(chan []byte, 1)
	go func() {
		var seen []byte
		call.Stream(wire.StreamOutput, func(b []byte) {
			if len(seen) == 0 {
				close(echo)
			}
			if seen = append(seen, b...); len(seen) > len(canaryText+ns.LandlockMark) {
				seen = seen[:len(canaryText+ns.LandlockMark)]
			}
		})
		all <- seen
	}()
	call.Body([]byte(canaryText))
	select {
	case <-echo:
	case <-call.Done():
		_, err := call.Answer()
		return fmt.Errorf("canary ended early: %w", errors.Join(err, errors.New("no echo")))
	}
	if err := p.observeCanary(); err != nil {
		return err
	}
	call.BodyEnd()
	<-call.Done()
	answer, err := call.Answer()
	if err != nil {
		return err
	}
	p.report.observed(Landlock, p.probed(string(<-all), answer))
	return nil
}

// canaryText is what the canary repeats.
const canaryText = "canary\n"

// probed judges what the canary did last: it tried to read a file that only
// Landlock keeps from it. That the file is there and may be read by mode and
// mount was seen while the canary lived.
func (p *preparation) probed(seen string, answer []byte) error {
	end, err := wire.DecodeExited(answer)
	switch {
	case err != nil:
		return err
	case p.probe != nil:
		return p.probe
	case seen == canaryText+ns.LandlockMark:
		return fmt.Errorf("the probe read %s", ns.LandlockProbe)
	case seen != canaryText || end.Signal != 0 || end.Code != 1:
		return fmt.Errorf("the probe ended with %q, code %d, signal %d", seen, end.Code, end.Signal)
	}
	return nil
}

// canRead is the other half of the probe: what the canary will try to read is
// there, and open to its mode.
func (c canary) canRead() error {
	name := c.dir + "/root" + ns.LandlockProbe
	st, err := os.Lstat(name)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if string(b) != ns.LandlockMark || st.Mode() != 0o444 {
		return fmt.Errorf("the probe's own file is %v with %d bytes", st.Mode(), len(b))
	}
	return nil
}

func (p *preparation) observeCanary() error {
	pid, err := p.findCanary()
	if err != nil {
		return fmt.Errorf("find the canary: %w", err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("canary %d: %w", pid, err)
	}
	defer unix.Close(fd)
	c := canary{dir: fmt.Sprintf("/proc/%d", pid), pid: pid, prep: p, texts: map[string]string{}}
	c.member = sync.OnceValue(func() error { return p.group.Member(pid) })
	if c.mounts, err = readMounts(c.dir + "/mountinfo"); err != nil {
		return err
	}
	// On one thread, because of tracing, that ends, because it enters a
	// namespace of the canary; which must be the last that is done there.
	checks := c.checks()
	err = onLostThread(func() error {
		for control, check := range checks {
			if control != PivotRoot {
				p.report.observed(control, check())
			}
		}
		p.report.observed(PivotRoot, checks[PivotRoot]())
		return nil
	})
	if err != nil {
		return err
	}
	p.probe = c.canRead()
	// Alive after the last reading: every reading was of this process.
	if err := unix.PidfdSendSignal(fd, 0, nil, 0); err != nil {
		return fmt.Errorf("canary %d ended while it was observed: %w", pid, err)
	}
	return nil
}

// findCanary gives the only process of the payload: by the control group, or
// without one as the only child of the hand.
func (p *preparation) findCanary() (int, error) {
	var pids []int
	var err error
	if p.group != nil {
		pids, err = p.group.Payload()
	}
	// Version 1 lists the hand too: its forking thread is in the group.
	pids = slices.DeleteFunc(pids, func(pid int) bool { return pid == p.hand.os.Pid })
	if len(pids) == 0 && err == nil {
		pids, err = children(p.hand.os.Pid)
	}
	if err != nil {
		return 0, err
	}
	if len(pids) != 1 {
		return 0, fmt.Errorf("expected one process, found %v", pids)
	}
	return pids[0], nil
}

func children(ppid int) ([]int, error) {
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		b, err := os.ReadFile(e)
		if err != nil {
			continue // ended meanwhile
		}
		// The name in parentheses may contain anything; the fields follow the last one.
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) < 2 || f[1] != strconv.Itoa(ppid) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(e)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
