package ns

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"cairn/sandbox/hand/wire"
)

// step is one part of the set-up and the control that is lost when it fails.
// report marks the step that completes its control. instead is what the tests'
// build does when the control is left out; without it the step runs as ever,
// since others stand on it.
type step struct {
	control string
	run     func(*Plan) error
	report  bool
	instead func(*Plan) error
}

// Enter builds the sandbox around the calling process and gives the controls
// it installed, and those that failed and were optional. payload runs a function on the thread that will fork the
// agent's programs, before privileges are dropped.
func Enter(p *Plan, payload func(func() error) error) (wire.Ready, error) {
	if len(p.Omit) > 0 && !canOmit {
		return wire.Ready{}, &StepError{p.Omit[0], errors.New("this build cannot leave a control out")}
	}
	nothing := func(*Plan) error { return nil }
	on := func(f func(*Plan) error) func(*Plan) error {
		return func(p *Plan) error { return payload(func() error { return f(p) }) }
	}
	return runSteps(p, []step{
		{control: userNS, run: inUserNS, report: true},
		{control: pidNS, run: isInit, report: true},
		{control: utsNS, run: setHostname, report: true, instead: nothing},
		{control: netNS, run: loopback, report: true, instead: nothing},
		{control: netNS, run: openListeners},
		{control: ipcNS, run: nothing, report: true}, // made by the clone, nothing to do in it
		{control: noNetwork, run: nothing, report: true, instead: openNetwork},
		{control: mountNS, run: privateMounts, report: true},
		{control: overlay, run: openSources},
		{control: readOnly, run: newRoot},
		{control: readOnly, run: mountOwn},
		{control: pidNS, run: mountProc},
		{control: overlay, run: mountWorkspace, report: true, instead: nothing},
		{control: readOnly, run: mountLate},
		{control: readOnly, run: sealOwnRoot},
		{control: pivotRoot, run: pivot, report: true, instead: changeRoot},
		{control: readOnly, run: closeTrees, report: true},
		{control: userNS, run: noNestedUserNS},
		{control: rlimits, run: setLimits, report: true, instead: nothing},
		{control: cgroupKill, run: on(joinPayload)},
		{control: cgroupNS, run: on(ownCgroups), report: true, instead: nothing},
		{control: userNS, run: on(newKeyring)},
		{control: dropCaps, run: on(dropBounding), instead: nothing},
		{control: dropCaps, run: becomeAgent, report: true},
		{control: noNewPrivs, run: checkNoNewPrivs, report: true, instead: nothing},
		{control: pidNS, run: on(dieWithParent)},
		{control: dropCaps, run: notDumpable},
		{control: landlocked, run: restrictFiles, instead: nothing},
		{control: landlocked, run: on(restrictPrograms), report: true, instead: nothing},
		{control: filtered, run: installFilter, report: true, instead: nothing},
	})
}

func runSteps(p *Plan, steps []step) (wire.Ready, error) {
	var ready wire.Ready
	failed := map[string]bool{}
	for _, s := range steps {
		run := s.run
		// A hand that hides the omission: only the worker's reading tells.
		if s.instead != nil && slices.Contains(p.Omit, s.control) {
			run = s.instead
		}
		if failed[s.control] {
			continue
		}
		err := run(p)
		if err != nil && slices.Contains(p.Optional, s.control) {
			failed[s.control] = true
			ready.Failed = append(ready.Failed, wire.Fail{Control: s.control, Message: err.Error()})
			continue
		}
		if err != nil {
			return ready, &StepError{s.control, err}
		}
		if s.report {
			ready.Installed = append(ready.Installed, s.control)
		}
	}
	return ready, nil
}

// inUserNS refuses to go on as the host's own root: several steps below set
// what belongs to the current user namespace.
func inUserNS(*Plan) error {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return err
	}
	if f := strings.Fields(string(b)); len(f) == 3 && f[0] == "0" && f[1] == "0" {
		return errors.New("this is the host's own user namespace")
	}
	return nil
}

func isInit(*Plan) error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("process id inside is %d, must be 1", pid)
	}
	return nil
}

// setHostname fails in the host's namespace, for want of a right there.
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
