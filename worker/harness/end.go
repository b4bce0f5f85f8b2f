package harness

import (
	"errors"
	"fmt"
	"time"

	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/task"
	"cairn/worker/agent"
	"cairn/worker/workspace"
)

// errEnded stops the loop of a run that was ended in the middle of a step.
var errEnded = errors.New("ended")

// End is the command that ends a run together with its turn or its attempt.
func End(target run.Target, ending run.Ending) event.Command {
	if target.Task.IsZero() {
		return conversation.EndTurn{Conversation: target.Conversation, Space: target.Space, Run: target.Run, End: ending}
	}
	return task.EndRun{Task: target.Task, Space: target.Space, Run: target.Run, End: ending}
}

// end closes the sandbox, so that the next run finds files that nobody changes any more, records what the run did to
// them, and ends the run.
func (l *loop) end(ending run.Ending) error {
	if err := l.closeBox(); err != nil {
		return err
	}
	if err := l.recordChanges(); err != nil {
		return err
	}
	ending.Epoch = l.claim.Epoch
	err := l.record(End(l.claim.Target, ending), "run_ended")
	if erased(err) { // an answer or a message cannot be sealed any more
		ending = run.Ending{Outcome: run.StatusFailed, Code: run.CodeContentErased, Epoch: l.claim.Epoch}
		err = l.record(End(l.claim.Target, ending), "run_ended")
	}
	if err != nil {
		return err
	}
	l.Log.Info("run ended", "run", l.claim.Run, "epoch", l.claim.Epoch, "outcome", ending.Outcome, "code", ending.Code)
	return nil
}

// release hands the run back with its files.
func (l *loop) release() error {
	if err := l.closeBox(); err != nil {
		return err
	}
	if err := l.record(run.Release{Target: l.claim.Target, Epoch: l.claim.Epoch}); err != nil {
		return err
	}
	l.Log.Info("run released", "run", l.claim.Run, "epoch", l.claim.Epoch)
	return nil
}

// cancel ends the run as cancelled. A call that an older epoch left open stays in doubt.
func (l *loop) cancel(state run.State) error {
	if len(state.Steps) > 0 {
		for _, call := range state.Steps[len(state.Steps)-1].Calls {
			if call.State != run.Called || call.CalledEpoch == l.claim.Epoch {
				continue
			}
			if err := l.give(call, run.OutcomeInDoubt, agent.Doubt(call)); err != nil {
				return err
			}
		}
	}
	return l.end(run.Ending{Outcome: run.StatusCancelled})
}

// refused ends a run that can have no workspace.
func (l *loop) refused(state run.State, err error) error {
	refusal, ok := errors.AsType[*workspace.Refusal](err)
	if !ok {
		return err
	}
	return l.end(run.Ending{Outcome: run.StatusFailed, Code: refusal.Code, Message: bounded(refusal.Message)})
}

func (l *loop) closeBox() error {
	box := l.box
	if box == nil {
		return nil
	}
	begin, usage := time.Now(), box.Usage()
	if err := box.Close(); err != nil {
		return fmt.Errorf("close the sandbox of run %s after %s: %w", l.claim.Run, time.Since(begin), err)
	}
	l.box = nil
	if !l.recorded {
		return nil
	}
	return l.record(closing(l.claim, box, usage, time.Since(begin)), "sandbox_closed")
}
