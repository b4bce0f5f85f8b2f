package harness

import (
	"errors"
	"fmt"
	"time"

	"cairn/domain/conversation"
	"cairn/domain/run"
	"cairn/worker/agent"
	"cairn/worker/workspace"
)

// errEnded stops the loop of a run that was ended in the middle of a step.
var errEnded = errors.New("ended")

// end closes the sandbox, so that the next turn finds files that nobody changes any more, and ends the turn.
func (l *loop) end(ending run.Ending) error {
	if err := l.closeBox(); err != nil {
		return err
	}
	ending.Epoch = l.claim.Epoch
	command := conversation.EndTurn{Conversation: l.claim.Conversation, Space: l.claim.Space, Run: l.claim.Run, End: ending}
	err := l.record(command, "run_ended")
	if erased(err) { // an answer or a message cannot be sealed any more
		command.End = run.Ending{Outcome: run.StatusFailed, Code: run.CodeContentErased, Epoch: l.claim.Epoch}
		err = l.record(command, "run_ended")
	}
	if err != nil {
		return err
	}
	l.Log.Info("run ended", "run", l.claim.Run, "epoch", l.claim.Epoch, "outcome", command.End.Outcome, "code", command.End.Code)
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
