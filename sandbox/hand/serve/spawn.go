package serve

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
)

// Spawner starts every program from one locked thread, which carries the
// payload's cgroup and empty bounding set, and reaps every child of process 1.
type Spawner struct {
	jobs    chan func()
	mu      sync.Mutex // held over a fork and its entry, and over each reaping
	waiting map[int]chan syscall.WaitStatus
	// CgroupFD is an open cgroup v2 folder for the programs, -1 for none.
	CgroupFD int
}

// NewSpawner starts the thread and takes over all signals: process 1 must
// not end by a signal that a program inside sends it.
func NewSpawner() *Spawner {
	s := &Spawner{jobs: make(chan func()), waiting: map[int]chan syscall.WaitStatus{}, CgroupFD: -1}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	shield()
	go s.reap(signals)
	go func() {
		runtime.LockOSThread()
		for f := range s.jobs {
			f()
		}
	}()
	return s
}

// Do runs f on the thread.
func (s *Spawner) Do(f func() error) error {
	done := make(chan error, 1)
	s.jobs <- func() { done <- f() }
	return <-done
}

// Start forks and executes; the channel gives the end of the program.
func (s *Spawner) Start(path string, argv []string, attr *syscall.ProcAttr) (end <-chan syscall.WaitStatus, err error) {
	if s.CgroupFD >= 0 {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, s.CgroupFD
	}
	ch := make(chan syscall.WaitStatus, 1)
	err = s.Do(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		pid, err := syscall.ForkExec(path, argv, attr)
		if err == nil {
			s.waiting[pid] = ch
		}
		return err
	})
	return ch, err
}

// reap collects every dead child whenever any signal arrives: SIGCHLD is not
// queued and may be lost among others.
func (s *Spawner) reap(signals <-chan os.Signal) {
	for range signals {
		s.mu.Lock()
		for {
			var ws syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
			if ch := s.waiting[pid]; ch != nil {
				delete(s.waiting, pid)
				ch <- ws
			}
		}
		s.mu.Unlock()
	}
}

// KillAll kills every process of the namespace but the hand. Outside of a
// process namespace of its own that would be the whole machine.
func (s *Spawner) KillAll() error {
	if os.Getpid() != 1 {
		return errors.New("kill all: the hand is not process 1 of a process namespace")
	}
	if err := syscall.Kill(-1, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
