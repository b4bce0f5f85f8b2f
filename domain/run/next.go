package run

import "cairn/domain/agent"

// ActionKind is what the loop must do.
type ActionKind string

// The kinds of actions.
const (
	Nothing     ActionKind = "nothing"      // nobody holds the run, it has ended, or a call is under way
	CallModel   ActionKind = "call_model"   // ask the model for the next step, then RecordAnswer
	DoCall      ActionKind = "do_call"      // CallTool, act, ReturnTool
	RefuseCall  ActionKind = "refuse_call"  // the tool is not granted: ReturnTool with outcome error
	ReportDoubt ActionKind = "report_doubt" // nobody knows whether it acted: ReturnTool with outcome in_doubt
	Finish      ActionKind = "finish"       // end the turn as succeeded, with the answer
	Fail        ActionKind = "fail"         // end the turn as failed, with the code
	Cancel      ActionKind = "cancel"       // end the turn as cancelled
)

// Action is the next thing to do. Only the fields of its kind are set.
type Action struct {
	Kind   ActionKind `json:"kind"`
	Call   Call       `json:"call"`   // DoCall, RefuseCall, ReportDoubt
	Again  bool       `json:"again"`  // DoCall: a read-only call in doubt
	Answer string     `json:"answer"` // Finish
	Code   string     `json:"code"`   // Fail
}

// Next says what the worker that holds the run must do now. It is a function of the state alone; the wall
// limit (State.Deadline) needs a clock and is the worker's to watch.
func Next(s State) Action {
	switch {
	case !s.Status.Claimed():
		return Action{Kind: Nothing}
	case s.CancelRequested:
		return Action{Kind: Cancel}
	case s.erased():
		return Action{Kind: Fail, Code: CodeContentErased}
	case len(s.Steps) == 0:
		return s.nextStep()
	}
	last := s.Steps[len(s.Steps)-1]
	for _, call := range last.Calls {
		if call.State != Returned {
			return s.nextCall(call)
		}
	}
	if len(last.Calls) == 0 {
		return Action{Kind: Finish, Answer: last.Text.Text()}
	}
	return s.nextStep()
}

func (s State) nextStep() Action {
	if int64(len(s.Steps)) >= s.Limits.ModelCalls {
		return Action{Kind: Fail, Code: CodeLimitModelCalls}
	}
	return Action{Kind: CallModel}
}

func (s State) nextCall(call Call) Action {
	switch {
	case call.State == Asked && !s.grants(call.Tool):
		return Action{Kind: RefuseCall, Call: call}
	case call.State == Asked:
		return Action{Kind: DoCall, Call: call}
	case call.CalledEpoch == s.Epoch:
		return Action{Kind: Nothing}
	case agent.ReadOnly(call.Tool):
		return Action{Kind: DoCall, Call: call, Again: true}
	default:
		return Action{Kind: ReportDoubt, Call: call}
	}
}

// erased reports whether the key of any content that the model would need is gone.
func (s State) erased() bool {
	if s.Prompt.Erased() || s.Instructions.Erased() {
		return true
	}
	for _, step := range s.Steps {
		if step.Text.Erased() {
			return true
		}
		for _, call := range step.Calls {
			if call.Arguments.Erased() || call.Result.Output.Erased() {
				return true
			}
		}
	}
	return false
}
