package run

import (
	"fmt"
	"strings"

	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// maxDecisions bounds one event.
const maxDecisions = 100

// Decide implements event.Command. What is recorded was decided by the worker's proxy: the words in it are of
// the agent's making, so that they are checked like any text and sealed.
func (c RecordEgress) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	state := event.StateOf[State](view, c.Stream())
	if err := state.requireHolder(c.Epoch, meta.Actor); err != nil {
		return nil, err
	}
	if len(c.Decisions) > maxDecisions {
		return nil, fault.Field("decisions", "%d decisions, the limit is %d: count the others as unlisted", len(c.Decisions), maxDecisions)
	}
	const most = 1 << 53
	if err := check.First(check.Range("allowed", c.Allowed, 0, most), check.Range("refused", c.Refused, 0, most), check.Range("unlisted", c.Unlisted, 0, most)); err != nil {
		return nil, err
	}
	decided := EgressDecided{Epoch: c.Epoch, Decisions: make([]EgressDecision, 0, len(c.Decisions)), Allowed: c.Allowed, Refused: c.Refused, Unlisted: c.Unlisted}
	for i, w := range c.Decisions {
		d, err := w.decided(fmt.Sprintf("decisions[%d]", i))
		if err != nil {
			return nil, err
		}
		decided.Decisions = append(decided.Decisions, d)
	}
	return c.change(decided), nil
}

// checkMethod lets no more through than a method can be: the field is not sealed.
func checkMethod(field, method string) error {
	if len(method) > 32 || strings.ContainsFunc(method, func(c rune) bool { return (c < 'A' || c > 'Z') && c != '-' }) {
		return fault.Field(field, "%.40q: want at most 32 capitals and hyphens; name what is none OTHER", method)
	}
	return nil
}

func (w EgressWish) decided(at string) (EgressDecision, error) {
	err := check.First(check.Line(at+".rule", w.Rule, 0, 300), check.Line(at+".host", w.Host, 0, 255), checkMethod(at+".method", w.Method),
		check.Range(at+".port", int64(w.Port), 0, 65535), check.Range(at+".count", w.Count, 1, 1<<53))
	if err == nil && w.Reason != "" {
		err = check.Code(at+".reason", w.Reason)
	}
	d := EgressDecision{Allowed: w.Allowed, Rule: w.Rule, Reason: w.Reason, Target: event.Seal(w.Host), Port: w.Port, Method: w.Method, Count: w.Count}
	if err == nil && w.Path != nil {
		err = check.Text(at+".path", *w.Path, 0, 256)
		d.Path = event.Seal(*w.Path)
	}
	return d, err
}
