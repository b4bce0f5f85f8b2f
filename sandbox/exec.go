package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"cairn/sandbox/hand"
	"cairn/sandbox/hand/wire"
)

// cancelWait is how long the hand has to end a call that was cancelled;
// after that the sandbox is killed.
const cancelWait = 5 * time.Second

// ExecRequest is one program to run. Exactly one of Argv and Shell is set.
type ExecRequest struct {
	Argv    []string          // program and arguments; found by PATH
	Shell   string            // text for /bin/sh -c
	Dir     string            // absolute or below /workspace; empty: /workspace
	Env     map[string]string // on top of the sandbox's environment
	Stdin   []byte            // nil: empty standard input
	Timeout time.Duration     // 0: none but the context's

	// OnOutput sees every part of both streams ("stdout", "stderr") as it
	// arrives, one at a time. While it blocks the program is slowed down.
	OnOutput func(stream string, p []byte)
}

// ExecResult is how it ended.
type ExecResult struct {
	ExitCode    *int // nil when a signal ended it
	Signal      int  // number of that signal, 0 for none
	TimedOut    bool // Timeout passed: every process of the sandbox was killed
	Interrupted bool // another call of the sandbox was cancelled meanwhile
	Stdout      Output
	Stderr      Output
	Duration    time.Duration // by the worker's clock
	Hits        []Hit         // limits that were reached meanwhile
}

// Exec runs one program and returns when it has ended; what it leaves in the
// background may stay until Close. When Timeout passes or ctx ends, every
// process of the sandbox but the hand is killed, whichever call started it.
// Errors: *ToolError when the program cannot be run, the context's error,
// ErrHandLost. The result holds the output in every case.
func (i *Instance) Exec(ctx context.Context, r ExecRequest) (ExecResult, error) {
	if (len(r.Argv) == 0) == (r.Shell == "") {
		return ExecResult{}, &ToolError{Code: wire.CodeBadArgument, Message: "give either a program or a shell command"}
	}
	argv := r.Argv
	if r.Shell != "" {
		argv = []string{"/bin/sh", "-c", r.Shell}
	}
	m := wire.Exec{Argv: argv, Dir: r.Dir, Env: environment(i.spec.Env, r.Env), Stdin: r.Stdin != nil}
	if err := ctx.Err(); err != nil {
		return ExecResult{}, err
	}
	begin := time.Now()
	call, err := i.client.Start(m.Encode())
	if err != nil {
		return ExecResult{}, err
	}
	if r.Stdin != nil {
		go func() {
			if call.Body(r.Stdin) {
				call.BodyEnd()
			}
		}()
	}
	res := ExecResult{}
	collect := i.collect(call, r.OnOutput, &res)
	timedOut, stopped := i.await(ctx, call, r.Timeout)
	collect.Wait()
	res.TimedOut, res.Duration = timedOut, time.Since(begin)
	res.Hits = append(i.hits(), i.outputHits(&res)...)
	if timedOut {
		took := uint64(res.Duration.Nanoseconds())
		res.Hits = append(res.Hits, Hit{Limit: LimitTime, Count: 1, Allowed: uint64(r.Timeout.Nanoseconds()), Measured: &took, By: "worker"})
	}
	return res, i.exited(call, &res, stopped)
}

func (i *Instance) exited(call *hand.Call, res *ExecResult, stopped error) error {
	answer, err := call.Answer()
	if err != nil {
		return errors.Join(stopped, err)
	}
	m, err := wire.DecodeExited(answer)
	if err != nil || m.Signal > 64 || m.Code < 0 || m.Code > 255 {
		i.client.Lose(wire.ErrProtocol)
		return errors.Join(stopped, ErrHandLost, err)
	}
	res.Signal, res.Interrupted = int(m.Signal), m.Interrupted
	if m.Signal == 0 {
		code := int(m.Code)
		res.ExitCode = &code
	}
	return stopped
}

// collect keeps both streams and passes them on, one part at a time.
func (i *Instance) collect(call *hand.Call, on func(string, []byte), res *ExecResult) *sync.WaitGroup {
	var both sync.WaitGroup
	var one sync.Mutex
	stream := func(number uint8, name string, to *Output) {
		k := keeper{limit: i.spec.Limits.Output}
		call.Stream(number, func(p []byte) {
			k.add(p)
			if on != nil {
				one.Lock()
				defer one.Unlock()
				on(name, p)
			}
		})
		*to = k.output()
	}
	both.Go(func() { stream(wire.StreamOutput, "stdout", &res.Stdout) })
	both.Go(func() { stream(wire.StreamError, "stderr", &res.Stderr) })
	return &both
}

// await waits for the answer and cancels the call when its time is over.
func (i *Instance) await(ctx context.Context, call *hand.Call, limit time.Duration) (timedOut bool, err error) {
	var timer <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-call.Done():
		return false, nil
	case <-timer:
		timedOut = true
	case <-ctx.Done():
		err = ctx.Err()
	}
	go call.Cancel() // a hand that does not read must not hold this up
	select {
	case <-call.Done():
	case <-time.After(cancelWait):
		i.client.Lose(errors.New("it did not end a cancelled call in time"))
		<-call.Done()
	}
	return timedOut, err
}
