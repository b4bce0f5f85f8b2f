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
	"time"

	"golang.org/x/sys/unix"

	"cairn/sandbox/hand/wire"
)

const canaryTimeout = 10 * time.Second

// observe starts a canary on the path that every program of the agent takes,
// and reads in the worker's own /proc what the kernel says about it.
func (p *preparation) observe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, canaryTimeout)
	defer cancel()
	m := wire.Exec{Argv: []string{"cat"}, Dir: "/", Env: environment(), Stdin: true}
	call, err := p.hand.client.Start(m.Encode())
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { p.hand.client.Lose(fmt.Errorf("canary: %w", ctx.Err())) })
	defer stop()
	// It answers, so its exec is over: what is read now is its last state.
	echo := make(chan struct{}, 1)
	go call.Stream(wire.StreamOutput, func([]byte) {
		select {
		case echo <- struct{}{}:
		default:
		}
	})
	call.Body([]byte("canary\n"))
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
	_, err = call.Answer()
	return err
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
	c := canary{dir: fmt.Sprintf("/proc/%d", pid), pid: pid, prep: p}
	for control, check := range c.checks() {
		p.report.observed(control, check())
	}
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
