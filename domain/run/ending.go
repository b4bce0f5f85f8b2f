package run

import (
	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// The outcomes of a call.
const (
	OutcomeOK        = "ok"
	OutcomeError     = "error"
	OutcomeTimeout   = "timeout"
	OutcomeCancelled = "cancelled"
	OutcomeInDoubt   = "in_doubt"
)

// The codes of failed runs that Cairn itself gives. They are stable.
const (
	CodeModelRefused     = "model_refused"
	CodeModelUnavailable = "model_unavailable"
	CodeLimitWall        = "limit_wall"
	CodeLimitModelCalls  = "limit_model_calls"
	CodeLimitDisk        = "limit_disk" // the watchdog ended the sandbox
	CodeWorkspaceLost    = "workspace_lost"
	CodeSandboxRefused   = "sandbox_refused"
	CodeContentErased    = "content_erased"
	CodeContentMissing   = "content_missing" // text that the run needs cannot be read from the blob store
	CodeWorkerLost       = "worker_lost"     // the only process that serves the run's queue is gone
)

// Ending is how a run is to end.
type Ending struct {
	Outcome Status `json:"outcome"` // StatusSucceeded, StatusFailed or StatusCancelled
	Answer  string `json:"answer"`  // succeeded
	Code    string `json:"code"`    // failed
	Message string `json:"message"` // failed; may be empty
	Epoch   int64  `json:"epoch"`
}

// End answers the terminal event of a run, for conversation.EndTurn and task.EndRun. Only the worker that holds the run
// may end it; the system may also fail or cancel one that nobody holds.
func (s State) End(end Ending, actor string) (event.Event, error) {
	if err := s.requireEpoch(end.Epoch); err != nil {
		return nil, err
	}
	if actor != event.System || end.Outcome == StatusSucceeded {
		if err := s.requireHolder(end.Epoch, actor); err != nil {
			return nil, err
		}
	}
	if err := end.check(); err != nil {
		return nil, err
	}
	switch end.Outcome {
	case StatusSucceeded:
		return s.succeed(end)
	case StatusFailed:
		return Failed{Epoch: end.Epoch, Code: end.Code, Message: sealSome(end.Message)}, nil
	}
	if !s.CancelRequested && actor != event.System {
		return nil, fault.New(fault.Conflict, "cancel_not_requested", "nobody asked to cancel the run: end it as failed, or release it")
	}
	return Cancelled{Epoch: end.Epoch}, nil
}

func (s State) succeed(end Ending) (event.Event, error) {
	for _, step := range s.Steps {
		for _, call := range step.Calls {
			if call.State != Returned {
				return nil, fault.New(fault.Conflict, "call_open", "call %q has not returned: record what it came to first", call.ID)
			}
		}
	}
	return Succeeded{Epoch: end.Epoch, Answer: event.Seal(end.Answer)}, nil
}

func (e Ending) check() error {
	err := check.First(
		check.OneOf("end.outcome", string(e.Outcome), string(StatusSucceeded), string(StatusFailed), string(StatusCancelled)),
		check.Text("end.answer", e.Answer, 0, check.MaxContent),
		check.Text("end.message", e.Message, 0, check.MaxContent))
	switch {
	case err != nil:
		return err
	case e.Outcome == StatusFailed:
		err = check.Code("end.code", e.Code)
	case e.Code != "" || e.Message != "":
		err = fault.Field("end.code", "code and message belong to a failed run: leave them empty, or fail it")
	}
	if err == nil && e.Answer != "" && e.Outcome != StatusSucceeded {
		err = fault.Field("end.answer", "an answer belongs to a succeeded run: leave it empty")
	}
	return err
}

// sealSome seals text where there is any; an empty one stays none, which needs no key.
func sealSome(text string) event.Sealed {
	if text == "" {
		return event.Sealed{}
	}
	return event.Seal(text)
}

// RequestCancel answers what asks the worker that holds the run to end it; nothing when it was asked before.
func (s State) RequestCancel(actor string) []event.Event {
	if s.CancelRequested {
		return nil
	}
	reason := ReasonRequested
	if actor == event.System {
		reason = ReasonSystem
	}
	return []event.Event{CancelRequested{Reason: reason}}
}

// The reasons of a requested cancellation.
const (
	ReasonRequested = "requested"
	ReasonSystem    = "system"
)
