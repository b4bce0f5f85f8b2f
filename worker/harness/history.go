package harness

import (
	"fmt"
	"slices"

	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/run"
	"cairn/worker/workspace"
)

// pastTurn is an earlier turn, or an attempt that this one continues. It has ended.
type pastTurn struct {
	run   event.ID
	state run.State
}

const historyBatch = 500

// history loads what went before, once: ended runs never change, and no turn starts or ends while this one is
// active. For the run of a conversation it is the earlier turns, for that of a task what it continues.
func (l *loop) history() error {
	if l.knows {
		return nil
	}
	err := l.retry("history", func() error {
		if !l.claim.Task.IsZero() {
			return l.continued()
		}
		runs, err := l.endedRuns()
		if err != nil {
			return err
		}
		l.past = make([]pastTurn, 0, len(runs))
		for _, id := range runs {
			state, err := l.runOf(id)
			if err != nil {
				return err
			}
			l.past = append(l.past, pastTurn{id, state})
		}
		return nil
	})
	l.knows = err == nil
	return err
}

// continued follows what the run goes on from, back to the attempt that began at the source.
func (l *loop) continued() error {
	state, err := l.runOf(l.claim.Run)
	l.past = nil
	for err == nil && !state.Continues.IsZero() {
		id := state.Continues
		if state, err = l.runOf(id); err == nil {
			l.past = append(l.past, pastTurn{id, state})
		}
	}
	slices.Reverse(l.past)
	return err
}

func (l *loop) runOf(id event.ID) (run.State, error) {
	value, _, err := l.DB.Load(l.held, run.Stream(id, l.claim.Space, l.claim.Topic()))
	if err != nil {
		return run.State{}, fmt.Errorf("earlier run %s: %w", id, err)
	}
	state, _ := value.(run.State)
	return state, nil
}

// endedRuns lists the runs of ended turns in the order of their ends. Only those events are opened.
func (l *loop) endedRuns() ([]event.ID, error) {
	var runs []event.ID
	for after := int64(0); ; {
		records, err := l.DB.Stream(l.held, l.claim.Conversation, after, historyBatch)
		if err != nil {
			return nil, err
		}
		for i := range records {
			after = records[i].Version
			if records[i].Kind != (conversation.TurnEnded{}).Kind() {
				continue
			}
			e, err := l.DB.Decode(l.held, &records[i])
			if err != nil {
				return nil, err
			}
			if ended, ok := e.(conversation.TurnEnded); ok {
				runs = append(runs, ended.Run)
			}
		}
		if len(records) < historyBatch {
			return runs, nil
		}
	}
}

func (l *loop) earlier() []run.State {
	states := make([]run.State, len(l.past))
	for i, turn := range l.past {
		states[i] = turn.state
	}
	return states
}

// layers are the earlier runs whose files go on in this one: of a conversation the turns that succeeded, of a
// task all that is continued, whatever it came to. A run that did not succeed may have lost its worker, and
// what that one left must die before its files are built upon.
func (l *loop) layers() []workspace.Past {
	var past []workspace.Past
	for _, turn := range l.past {
		switch {
		case turn.state.Status == run.StatusSucceeded:
			past = append(past, workspace.Past{Run: turn.run, Sandbox: turn.state.Sandbox})
		case !turn.state.Task.IsZero():
			past = append(past, workspace.Past{Run: turn.run, Sandbox: turn.state.Sandbox, Epoch: turn.state.Epoch})
		}
	}
	return past
}

// missing ends a run that needs text which the blob store or the vault cannot give; nothing is known of the
// text but its name.
func (l *loop) missing(err error) (over bool, _ error) {
	if !fault.Is(err, fault.Unavailable) {
		return true, err
	}
	return true, l.end(run.Ending{Outcome: run.StatusFailed, Code: run.CodeContentMissing, Message: bounded(err.Error())})
}
