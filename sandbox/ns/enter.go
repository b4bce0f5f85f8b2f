package ns

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// step is one part of the set-up and the control it installs; a step without
// a control of its own names the one that is lost when it fails.
type step struct {
	control string
	run     func(*Plan) error
	report  bool // installs the control, not only a part of it
}

// Enter builds the sandbox around the calling process and gives the controls
// it installed. payload is run on the thread that will fork the agent's
// programs, before privileges are dropped; see [Payload].
func Enter(p *Plan, payload func(func() error) error) ([]string, error) {
	if len(p.Omit) > 0 && !canOmit {
		return nil, &StepError{p.Omit[0], errors.New("this build cannot leave a control out")}
	}
	steps := []step{
		{pidNS, isInit, true},
		{utsNS, setHostname, true},
		{noNetwork, loopback, false},
		{mountNS, privateMounts, true},
		{overlay, openSources, false},
		{pivotRoot, newRoot, false},
		{readOnly, mountSystem, true},
		{readOnly, writeEtc, false},
		{readOnly, mountDevices, false},
		{pidNS, mountProc, false},
		{overlay, mountWorkspace, true},
		{readOnly, mountDeclared, false},
		{pivotRoot, pivot, true},
		{readOnly, sealRoot, false},
		{userNS, noNestedUserNS, false},
		{rlimits, setLimits, true},
		{cgroupKill, func(p *Plan) error { return payload(func() error { return joinPayload(p) }) }, false},
		{dropCaps, func(p *Plan) error { return payload(dropBounding) }, false},
		{dropCaps, becomeAgent, true},
		{noNewPrivs, setNoNewPrivs, true},
		{dropCaps, func(*Plan) error { return payload(dieWithParent) }, false},
		{dropCaps, notDumpable, false},
	}
	return runSteps(p, steps)
}

func runSteps(p *Plan, steps []step) ([]string, error) {
	// The worker's clone made these; the hand can only say that it lives in them.
	installed := []string{userNS, netNS, ipcNS}
	for _, s := range steps {
		if slices.Contains(p.Omit, s.control) {
			continue
		}
		if err := s.run(p); err != nil {
			return nil, &StepError{s.control, err}
		}
		if s.report {
			installed = append(installed, s.control)
		}
	}
	if !slices.Contains(p.Omit, noNetwork) {
		installed = append(installed, noNetwork)
	}
	return installed, nil
}

func isInit(*Plan) error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("process id inside is %d, must be 1", pid)
	}
	return nil
}

func setHostname(p *Plan) error { return unix.Sethostname([]byte(p.Hostname)) }

// loopback brings up lo, the only interface: programs expect 127.0.0.1.
func loopback(*Plan) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}
