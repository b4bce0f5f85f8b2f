package run

import (
	"slices"

	"cairn/domain/event"
	"cairn/domain/fault"
)

// requireOpen refuses a run that does not exist or has ended.
func (s State) requireOpen() error {
	switch {
	case s.Status == "":
		return fault.New(fault.NotFound, "run_not_found", "the run does not exist in this conversation or task and space: check its id")
	case s.Status.Terminal():
		return fault.New(fault.Conflict, "run_ended", "the run has ended as %s: nothing can be added to it", s.Status)
	}
	return nil
}

// requireEpoch also refuses whoever speaks for a claim that is over.
func (s State) requireEpoch(epoch int64) error {
	if err := s.requireOpen(); err != nil {
		return err
	}
	if epoch != s.Epoch {
		return fault.New(fault.Conflict, "run_fenced", "epoch %d is over, the run is at epoch %d: stop, another worker goes on", epoch, s.Epoch)
	}
	return nil
}

// requireHolder also refuses everyone but the worker that holds the run, and the system.
func (s State) requireHolder(epoch int64, actor string) error {
	if err := s.requireEpoch(epoch); err != nil {
		return err
	}
	if s.Epoch == 0 {
		return fault.New(fault.Conflict, "run_not_claimed", "no worker has claimed the run: start it first")
	}
	if !s.Status.Claimed() {
		return fault.New(fault.Conflict, "run_fenced", "the claim of epoch %d was taken back: stop, another worker goes on", epoch)
	}
	if name, ok := event.ActorWorker(actor); actor != event.System && (!ok || name != s.Worker) {
		return fault.New(fault.Denied, "run_not_yours", "%.80s does not hold the run: only the worker that claimed it may do this", actor)
	}
	return nil
}

func (s State) grants(tool string) bool { return slices.Contains(s.Tools, tool) }
