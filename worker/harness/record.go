package harness

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
)

const maxPause = 3 * time.Second

// record appends what happened. Refusals of the domain are returned; a database that does not answer is asked
// until the claim is over. An append whose outcome is unknown may have been made: then its repetition is
// refused by what it did itself, which is success, since nobody else speaks for this epoch.
func (l *loop) record(command event.Command, made ...string) error {
	tries := 0
	return l.retry(command.Name(), func() error {
		tries++
		_, err := l.DB.Execute(l.held, command, l.meta())
		if tries > 1 && slices.ContainsFunc(made, func(code string) bool { return fault.HasCode(err, code) }) {
			return nil
		}
		return err
	})
}

// retry asks again what failed for reasons that may pass.
func (l *loop) retry(what string, ask func() error) error {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, maxPause) {
		err := ask()
		switch kind := fault.KindOf(err); {
		case err == nil:
			return nil
		case l.held.Err() != nil:
			return fmt.Errorf("%s: %w", what, context.Cause(l.held))
		case fenced(err):
			return fmt.Errorf("%s: %w: %w", what, errFenced, err)
		case kind != "" && kind != fault.Unavailable:
			return err
		case pause >= maxPause && kind == fault.Unavailable:
			return err // a part of the installation is gone, not a connection
		}
		if pause > time.Second && pause < 2*time.Second {
			l.Log.Warn("the log does not answer: trying again", "run", l.claim.Run, "what", what)
		}
		select {
		case <-l.held.Done():
		case <-time.After(pause):
		}
	}
}

// fenced reports whether the log says that the run is somebody else's, or has ended.
func fenced(err error) bool {
	return fault.HasCode(err, "run_fenced") || fault.HasCode(err, "run_ended") || fault.HasCode(err, "run_not_yours")
}

// erased reports whether the log cannot take content of this space any more.
func erased(err error) bool { return fault.HasCode(err, "subject_erased") }

// give returns a call without an act.
func (l *loop) give(call run.Call, outcome, text string) error {
	return l.giveResult(run.ReturnTool{Call: call.ID, Outcome: outcome, Output: text, OutputBytes: int64(len(text))})
}

func (l *loop) giveResult(result run.ReturnTool) error {
	result.Target, result.Epoch = l.claim.Target, l.claim.Epoch
	err := l.record(result, "call_returned")
	if fault.Is(err, fault.Invalid) { // what cannot be recorded must not keep the run from going on
		result.Output = "error: the result cannot be recorded: " + bounded(err.Error())
		if result.Outcome == run.OutcomeOK {
			result.Outcome = run.OutcomeError
		}
		err = l.record(result, "call_returned")
	}
	return l.whenErased(err)
}

// whenErased ends a run whose space was erased under it. That is its end, so that errEnded stops the loop.
func (l *loop) whenErased(err error) error {
	if !erased(err) {
		return err
	}
	if err := l.end(run.Ending{Outcome: run.StatusFailed, Code: run.CodeContentErased}); err != nil {
		return err
	}
	return errEnded
}
