// Package harness is the native agent loop: it carries a claimed run on from wherever its log stands, to its
// end or to the point where another worker must go on.
//
//	           +------------------------- fold <-----------------------------+
//	           v                                                             |
//	run.Next: CallModel ----> ask the gateway ----------> RecordAnswer ------+
//	          DoCall -------> CallTool, act, ----------> ReturnTool ---------+
//	          RefuseCall, ReportDoubt -----------------> ReturnTool ---------+
//	          Finish, Fail, Cancel --> close the sandbox, RecordChanges, EndTurn or EndRun --> ended
//
//	from outside: cancelled --> the call is stopped and recorded, the run ends as cancelled
//	              draining ---> at a safe point the sandbox is closed, the run released
//	              held ends --> (lease lost, fenced) the sandbox is killed, nothing is appended
//
// Everything that it knows it reads from the log at each step; it keeps only the live sandbox. It may import
// the standard library, domain, db, sandbox and the other folders of worker.
package harness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cairn/db"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/sandbox"
	"cairn/worker/agent"
	"cairn/worker/model"
	"cairn/worker/workspace"
)

// Options are what all runs of a worker share.
type Options struct {
	DB         *db.DB
	Model      *model.Client
	Workspaces workspace.Config
	Worker     string // name of the worker; the actor of every command
	Attempts   int    // of one model call
	Backoff    time.Duration
	OnDelta    func(Delta) // sees answers as they come; must not block; may be nil
	Log        *slog.Logger
}

// Claim is a run that this worker has claimed.
type Claim struct {
	run.Target
	Epoch int64
}

// ErrLost is the cause of a held context that ended because the claim is over.
var ErrLost = errors.New("the claim is over")

// errFenced ends a loop whose run belongs to somebody else.
var errFenced = errors.New("fenced")

type loop struct {
	Options
	claim  Claim
	held   context.Context // ends when nothing may be appended any more
	orders *Orders

	box      *sandbox.Instance // nil until the first tool call
	recorded bool              // the log knows box
	broke    bool              // the sandbox was lost: the run is handed back
	past     []pastTurn
	knows    bool // past is loaded
}

// Run carries the run on until it has ended or is handed back, which is nil. An error means that it is left
// claimed, for the sweep to give to another worker. held must end with cause ErrLost when the claim is over.
func Run(held context.Context, o Options, claim Claim, orders *Orders) error {
	l := &loop{Options: o, claim: claim, held: held, orders: orders}
	err := l.run()
	if l.box != nil { // only when the run goes on elsewhere
		err = errors.Join(err, l.box.Close())
	}
	if errors.Is(err, errEnded) {
		return nil
	}
	if errors.Is(err, errFenced) || errors.Is(context.Cause(held), ErrLost) {
		o.Log.Warn("run is over for this worker: another one goes on", "run", claim.Run, "epoch", claim.Epoch)
		return nil
	}
	return err
}

func (l *loop) run() error {
	state, err := l.fold()
	if err != nil {
		return err
	}
	defer l.orders.deadline(state.Deadline)()
	if err := l.Workspaces.Check(l.held, l.claim.Run, state); err != nil && run.Next(state).Kind != run.Cancel {
		return l.refused(state, err)
	}
	for {
		over, err := l.step(state)
		if over || err != nil {
			return err
		}
		if state, err = l.fold(); err != nil {
			return err
		}
	}
}

// fold reads the run as the log has it now.
func (l *loop) fold() (run.State, error) {
	var state run.State
	err := l.retry("fold", func() error {
		value, _, err := l.DB.Load(l.held, l.claim.Stream())
		state, _ = value.(run.State)
		return err
	})
	if err != nil {
		return state, err
	}
	if state.Epoch != l.claim.Epoch || !state.Status.Claimed() {
		return state, errFenced
	}
	return state, nil
}

// step does the next thing. over: the run has ended or was handed back.
func (l *loop) step(state run.State) (over bool, err error) {
	action := run.Next(state)
	if action.Kind == run.CallModel || action.Kind == run.DoCall {
		if over, err := l.halt(state); over || err != nil {
			return over, err
		}
	}
	switch action.Kind {
	case run.CallModel:
		return l.callModel(state)
	case run.DoCall:
		return l.doCall(state, action.Call, action.Again)
	case run.RefuseCall:
		return false, l.give(action.Call, run.OutcomeError, agent.Refused(action.Call, state.Tools))
	case run.ReportDoubt:
		return false, l.give(action.Call, run.OutcomeInDoubt, agent.Doubt(action.Call))
	case run.Finish:
		return true, l.end(run.Ending{Outcome: run.StatusSucceeded, Answer: action.Answer})
	case run.Fail:
		return true, l.end(run.Ending{Outcome: run.StatusFailed, Code: action.Code, Message: failure(action.Code, state)})
	case run.Cancel:
		return true, l.cancel(state)
	}
	return true, fmt.Errorf("run %s: the log asks for %q, which its holder cannot do", l.claim.Run, action.Kind)
}

// halt says whether something from outside keeps the run from going on here.
func (l *loop) halt(state run.State) (over bool, err error) {
	hit, full := l.overLimit()
	switch why := l.orders.Why(); {
	case full: // another worker would only fill the disk again
		return true, l.end(run.Ending{Outcome: run.StatusFailed, Code: run.CodeLimitDisk, Message: hit.String()})
	case l.broke || why == errDrained:
		return true, l.release()
	case why == errOutOfTime || !time.Now().Before(state.Deadline):
		if err := l.recordWall(state); err != nil {
			return true, err
		}
		return true, l.end(run.Ending{Outcome: run.StatusFailed, Code: run.CodeLimitWall, Message: failure(run.CodeLimitWall, state)})
	case why == errWiped:
		return true, l.end(run.Ending{Outcome: run.StatusFailed, Code: run.CodeContentErased})
	case why != nil && why != errCancelled:
		return true, why
	case why == errCancelled:
		return true, fmt.Errorf("run %s was told to cancel, but its log does not say so", l.claim.Run)
	}
	return false, nil
}

// failure explains a code of ours; erased content leaves no key to seal a message with.
func failure(code string, state run.State) string {
	switch code {
	case run.CodeLimitModelCalls:
		return fmt.Sprintf("The model was asked %d times, which is the limit of this run (limits.model_calls).", state.Limits.ModelCalls)
	case run.CodeLimitWall:
		return fmt.Sprintf("The run took longer than %d s, which is its limit (limits.wall_seconds).", state.Limits.WallSeconds)
	}
	return ""
}

func (l *loop) meta() event.Meta {
	return event.Meta{Actor: event.WorkerActor(l.Worker), At: time.Now()}
}
