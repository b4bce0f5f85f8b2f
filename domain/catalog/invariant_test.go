package catalog_test

import (
	"reflect"

	"cairn/domain/claim"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
	"cairn/domain/task"
)

// checkEvent checks what must hold for an event at its place in its stream, before it is folded.
func (w *world) checkEvent(s *stream, e event.Event) {
	if s.ref.Kind != run.Kind {
		return
	}
	state := s.state.(run.State)
	if state.Status.Terminal() {
		w.t.Fatalf("%s after the run has ended as %s", e.Kind(), state.Status)
	}
	want := state.Epoch
	if _, ok := e.(run.Started); ok {
		want++
		if w.jobs[s.ref.ID]--; w.jobs[s.ref.ID] < 0 {
			w.t.Fatalf("run %s was claimed without a job", s.ref.ID)
		}
	}
	if epoch := reflect.ValueOf(e).FieldByName("Epoch"); epoch.IsValid() && epoch.Int() != want {
		w.t.Fatalf("%s has epoch %d at epoch %d", e.Kind(), epoch.Int(), state.Epoch)
	}
}

// check checks what must hold over all streams between two commands.
func (w *world) check() {
	claims := map[claim.Owner]int{}
	for _, id := range w.order {
		s := w.streams[id]
		switch state := s.state.(type) {
		case claim.State:
			if claims[state.Owner]++; state.Owner != (claim.Owner{}) && claims[state.Owner] > 1 {
				w.t.Fatalf("%v holds two claims", state.Owner)
			}
		case space.State:
			w.checkSpace(state)
		case conversation.State:
			w.checkTurns(s, state)
		case task.State:
			w.checkAttempts(s, state)
		}
	}
}

func (w *world) checkSpace(state space.State) {
	for _, role := range state.Members {
		if role == space.Owner {
			return
		}
	}
	w.t.Fatalf("a space without an owner: %v", state.Members)
}

// checkTurns follows the turns of a conversation by its events alone, without the fold.
func (w *world) checkTurns(s *stream, state conversation.State) {
	active, started := event.ID{}, 0
	ended := map[event.ID]bool{}
	for _, e := range s.events {
		switch e := e.(type) {
		case conversation.TurnStarted:
			if started++; !active.IsZero() || ended[e.Turn] || e.Number != int64(started) {
				w.t.Fatalf("turn %s started as %d of %d, active %s, ended %v", e.Turn, e.Number, started, active, ended[e.Turn])
			}
			active = e.Turn
		case conversation.TurnEnded:
			if ended[e.Turn] || active != e.Turn && e.Outcome != run.StatusCancelled {
				w.t.Fatalf("turn %s ended twice or before it started", e.Turn)
			}
			if ended[e.Turn] = true; active == e.Turn {
				active = event.ID{}
			}
		}
	}
	if active != state.Active.Turn || active.IsZero() && len(state.Waiting) > 0 {
		w.t.Fatalf("active turn by events %s, by fold %s, waiting %d", active, state.Active.Turn, len(state.Waiting))
	}
	w.checkRuns(s, state, ended)
}

// checkAttempts follows the attempts of a task by its events alone: one at a time, numbered without a gap, each
// with a run that has ended exactly when the attempt has, and with the lineage that both say.
func (w *world) checkAttempts(s *stream, state task.State) {
	active, number, known := event.ID{}, int64(0), map[event.ID]bool{}
	for _, e := range s.events {
		switch e := e.(type) {
		case task.AttemptStarted:
			if number++; !active.IsZero() || e.Attempt != number || known[e.Run] {
				w.t.Fatalf("attempt %d with run %s started as number %d while %s is active", e.Attempt, e.Run, number, active)
			}
			for _, before := range []event.ID{e.RetryOf, e.Continues} {
				if !before.IsZero() && !known[before] {
					w.t.Fatalf("attempt %d comes from run %s, which is none of the task's", number, before)
				}
			}
			active, known[e.Run] = e.Run, true
			r := w.state(run.Stream(e.Run, s.ref.Space, s.ref.ID)).(run.State)
			if r.Task != s.ref.ID || r.Attempt != number || r.RetryOf != e.RetryOf || r.Continues != e.Continues || !r.Conversation.IsZero() {
				w.t.Fatalf("run %s says %+v of itself, its attempt %+v", e.Run, r, e)
			}
		case task.AttemptEnded:
			if active != e.Run {
				w.t.Fatalf("the attempt of run %s ended, active is %s", e.Run, active)
			}
			active = event.ID{}
		}
	}
	if active != state.Active || number != state.Attempts || number == 0 {
		w.t.Fatalf("active run by events %s of %d, by fold %s of %d", active, number, state.Active, state.Attempts)
	}
	for id := range known {
		r := w.state(run.Stream(id, s.ref.Space, s.ref.ID)).(run.State)
		if r.Status == "" || r.Status.Terminal() != (id != active) {
			w.t.Fatalf("run %s is %q, the active attempt is %s", id, r.Status, active)
		}
		if r.Status == run.StatusQueued && w.jobs[id] == 0 {
			w.t.Fatalf("run %s waits for a worker without a job", id)
		}
	}
}

// checkRuns holds every turn against its run: both have ended or neither, and a run that may be claimed
// has a job.
func (w *world) checkRuns(s *stream, state conversation.State, ended map[event.ID]bool) {
	for _, e := range s.events {
		posted, ok := e.(conversation.MessagePosted)
		if !ok {
			continue
		}
		r := w.state(run.Stream(posted.Run, s.ref.Space, s.ref.ID)).(run.State)
		if r.Status.Terminal() != ended[posted.Turn] || r.Status == "" {
			w.t.Fatalf("run %s is %q, its turn ended: %v", posted.Run, r.Status, ended[posted.Turn])
		}
		if r.Status.Claimed() && !state.TurnStarted(posted.Run) {
			w.t.Fatalf("run %s is claimed, its turn is not active", posted.Run)
		}
		if state.TurnStarted(posted.Run) && r.Status == run.StatusQueued && w.jobs[posted.Run] == 0 {
			w.t.Fatalf("run %s waits for a worker without a job", posted.Run)
		}
	}
}
