package ns

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
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
// it installed. payload runs a function on the thread that will fork the
// agent's programs, before privileges are dropped.
func Enter(p *Plan, payload func(func() error) error) ([]string, error) {
	if len(p.Omit) > 0 && !canOmit {
		return nil, &StepError{p.Omit[0], errors.New("this build cannot leave a control out")}
	}
	nothing := func(*Plan) error { return nil }
	on := func(f func(*Plan) error) func(*Plan) error {
		return func(p *Plan) error { return payload(func() error { return f(p) }) }
	}
	return runSteps(p, []step{
		{control: userNS, run: inUserNS, report: true},
		{control: pidNS, run: isInit, report: true},
		{control: utsNS, run: setHostname, report: true},
		{control: netNS, run: loopback, report: true},
		{control: netNS, run: openListeners},
		{control: ipcNS, run: nothing, report: true}, // made by the clone, nothing to do in it
		{control: noNetwork, run: nothing, report: true, instead: openNetwork},
		{control: mountNS, run: privateMounts, report: true},
		{control: overlay, run: openSources},
		{control: readOnly, run: newRoot},
		{control: readOnly, run: mountSystem},
		{control: readOnly, run: writeEtc},
		{control: readOnly, run: trustAuthority},
		{control: readOnly, run: mountDevices},
		{control: pidNS, run: mountProc},
		{control: overlay, run: mountWorkspace, report: true, instead: nothing},
		{control: readOnly, run: mountDeclared},
		{control: pivotRoot, run: pivot, report: true, instead: changeRoot},
		{control: readOnly, run: sealRoot, report: true},
		{control: userNS, run: noNestedUserNS},
		{control: rlimits, run: setLimits, report: true, instead: nothing},
		{control: cgroupKill, run: on(joinPayload)},
		{control: userNS, run: on(newKeyring)},
		{control: dropCaps, run: on(dropBounding), instead: nothing},
		{control: dropCaps, run: becomeAgent, report: true},
		{control: noNewPrivs, run: setNoNewPrivs, report: true, instead: nothing},
		{control: pidNS, run: on(dieWithParent)},
		{control: dropCaps, run: notDumpable},
	})
}

func runSteps(p *Plan, steps []step) (installed []string, err error) {
	for _, s := range steps {
		run := s.run
		// A hand that hides the omission: only the worker's reading tells.
		if s.instead != nil && slices.Contains(p.Omit, s.control) {
			run = s.instead
		}
		if err := run(p); err != nil {
			return nil, &StepError{s.control, err}
		}
		if s.report {
			installed = append(installed, s.control)
		}
	}
	return installed, nil
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
