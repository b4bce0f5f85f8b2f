// Command hand is the small process inside a sandbox: process 1 of its
// namespaces, and the server of tool requests. The worker starts it from a
// sealed memory file with descriptor 3 as the connection; it is of no use by
// hand. Build it static and stripped: see package hand.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"cairn/sandbox/hand/serve"
	"cairn/sandbox/hand/wire"
	"cairn/sandbox/ns"
)

const socket = 3

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hand:", err)
		os.Exit(1)
	}
}

func run() error {
	syscall.Umask(0o022) // the worker's own would close the new root to the agent
	if err := syscall.SetNonblock(socket, true); err != nil {
		return fmt.Errorf("descriptor %d is not the worker's connection: %w", socket, err)
	}
	conn := os.NewFile(socket, "worker")
	out := wire.NewWriter(conn)
	plan, err := awaitPlan(conn)
	if err != nil {
		return err
	}
	if err := ns.CloseOthers(plan.Kept(socket)); err != nil {
		return err
	}
	spawn := serve.NewSpawner()
	spawn.CgroupFD = int(plan.Cgroup)
	ready, err := ns.Enter(&plan, spawn.Do)
	if err != nil {
		return refuse(out, err)
	}
	if err := out.Send(wire.Frame{Kind: wire.KindReady, Payload: ready.Encode()}); err != nil {
		return err
	}
	if err := serve.New(out, spawn).Serve(conn); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// awaitPlan waits until the worker has moved this process into its cgroups.
func awaitPlan(conn io.Reader) (ns.Plan, error) {
	f, err := wire.ReadFrame(conn)
	if err != nil {
		return ns.Plan{}, fmt.Errorf("await the plan: %w", err)
	}
	if f.Kind != wire.KindSetup {
		return ns.Plan{}, fmt.Errorf("%w: kind %d before the plan", wire.ErrProtocol, f.Kind)
	}
	return ns.DecodePlan(f.Payload)
}

func refuse(out *wire.Writer, err error) error {
	m := wire.Fail{Code: wire.CodeRefused, Message: err.Error()}
	var step *ns.StepError
	if errors.As(err, &step) {
		m.Control, m.Message = step.Control, step.Err.Error()
	}
	return errors.Join(err, out.Send(wire.Frame{Kind: wire.KindFail, Payload: m.Encode()}))
}
