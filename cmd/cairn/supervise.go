package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

const (
	restartAfter = 200 * time.Millisecond
	stopTime     = 30 * time.Second
	// A child that ends so soon after its start, so often in a row, will not do better the next time.
	tooSoon   = 5 * time.Second
	maxDeaths = 5
)

// child is a process of ours that is started again when it ends.
//
//	running --exits--> restarting --200 ms--> running
//	   |                   \--5 deaths within 5 s each--> failed
//	   \--context ends--> SIGTERM --exits or 30 s, then SIGKILL--> stopped
type child struct {
	name string
	args []string
	env  []string
	say  func(format string, args ...any)

	// before makes what the child needs ready for its next start; nil: nothing.
	before func(ctx context.Context) error
}

// run keeps the child alive until ctx ends, then stops it and waits for its end.
func (c *child) run(ctx context.Context) error {
	deaths := 0
	for {
		began := time.Now()
		err := c.once(ctx)
		if ctx.Err() != nil {
			return err
		}
		if deaths++; time.Since(began) > tooSoon {
			deaths = 1
		}
		if deaths == maxDeaths {
			return unavailable(fmt.Errorf("%s ended %d times in a row: %w", c.name, deaths, err))
		}
		c.say("%s ended (%v), starting it again", c.name, err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartAfter):
		}
		if c.before == nil {
			continue
		}
		if err := c.before(ctx); err != nil && ctx.Err() == nil {
			c.say("%s: %v", c.name, err)
		}
	}
}

func (c *child) once(ctx context.Context) error {
	process, err := c.start()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- wait(process) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if err := process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	select {
	case err := <-ended:
		if errors.Is(err, errTerminated) {
			return nil // it was still starting, and had nothing to drain
		}
		return err
	case <-time.After(stopTime):
	}
	err = process.Kill()
	<-ended
	return errors.Join(fmt.Errorf("%s did not stop within %v and was killed", c.name, stopTime), err)
}

// start runs this binary again in a process group of its own, so that Ctrl-C reaches only the supervisor,
// which then stops its children in order. When the supervisor is killed the kernel ends the child gently.
func (c *child) start() (*os.Process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	type started struct {
		process *os.Process
		err     error
	}
	result := make(chan started, 1)
	go func() {
		// The death signal is tied to the thread that forks: that thread must live as long as the process.
		runtime.LockOSThread()
		process, err := os.StartProcess(binary, append([]string{"cairn"}, c.args...), &os.ProcAttr{
			Env: c.env, Files: []*os.File{nil, os.Stderr, os.Stderr},
			Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM},
		})
		result <- started{process, err}
		if err == nil {
			select {} // keeps the thread
		}
	}()
	s := <-result
	if s.err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, s.err)
	}
	return s.process, nil
}

// unlessStopped is for a process that was asked to stop while it was still connecting: it had nothing to drain,
// and has stopped well.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// errTerminated is the end of a process that SIGTERM found before it could listen for it.
var errTerminated = errors.New("ended by SIGTERM")

func wait(process *os.Process) error {
	state, err := process.Wait()
	if err != nil {
		return err
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGTERM {
		return errTerminated
	}
	if !state.Success() {
		return errors.New(state.String())
	}
	return nil
}
