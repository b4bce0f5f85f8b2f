package catalog_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/task"
)

const (
	browserFile     = "../../web/src/fold/testdata/prefixes.jsonl"
	browserPrefixes = 1000
)

// TestBrowserPrefixes writes what the browser's folding of events is held against: random histories that real
// decisions made, and after each event the state of its stream as the domain folds it. With -update it writes
// the file, else it compares it: so a changed rule shows before the browser differs.
func TestBrowserPrefixes(t *testing.T) {
	var out bytes.Buffer
	lines := 0
	for seed := 1; lines < browserPrefixes; seed++ {
		w := rapid.Custom(history).Example(seed)
		lines += writeHistory(t, &out, w, seed, browserPrefixes-lines)
	}
	if *update {
		if err := os.WriteFile(browserFile, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if stored, err := os.ReadFile(browserFile); err != nil || !bytes.Equal(stored, out.Bytes()) {
		t.Errorf("%s is not what the domain folds now (%v): run 'make gen'", browserFile, err)
	}
}

func history(t *rapid.T) *world {
	g := gen{T: t, w: newWorld(t)}
	g.w.setUp()
	for range 150 {
		c := g.command()
		_ = g.w.execute(g.actor(c), c) // refusals are part of it
	}
	g.w.drain()
	return g.w
}

// browserLine is an event as the live socket and REST show it, and the state of its stream after it.
type browserLine struct {
	History int            `json:"history"`
	Topic   event.ID       `json:"topic"`
	Event   browserEvent   `json:"event"`
	Thread  *browserThread `json:"conversation,omitempty"`
	Run     *browserRun    `json:"run,omitempty"`
	Task    *browserTask   `json:"task,omitempty"`
}

type browserEvent struct {
	Position int64       `json:"position"`
	Stream   string      `json:"stream"`
	Version  int64       `json:"version"`
	Kind     string      `json:"kind"`
	Schema   int         `json:"schema"`
	At       string      `json:"at"`
	Actor    string      `json:"actor"`
	Data     event.Event `json:"data"`
}

type browserThread struct {
	Active  *event.ID        `json:"active"`
	Waiting []event.ID       `json:"waiting"`
	Started int64            `json:"started"`
	Turns   []browserMessage `json:"turns"`
}

// browserMessage is a row of the read table message: its rule is that of db/projection/conversation.go.
type browserMessage struct {
	Turn   event.ID `json:"turn"`
	State  string   `json:"state"`
	Number *int64   `json:"number"`
}

type browserTask struct {
	Active   *event.ID    `json:"active"`
	Last     *event.ID    `json:"last"`
	Attempts int64        `json:"attempts"`
	Title    event.Sealed `json:"title"`
	Prompt   event.Sealed `json:"prompt"`
}

type browserRun struct {
	Task         *event.ID     `json:"task"`
	Attempt      int64         `json:"attempt"`
	Status       run.Status    `json:"status"`
	Epoch        int64         `json:"epoch"`
	Worker       string        `json:"worker"`
	Host         string        `json:"host"`
	Deadline     *time.Time    `json:"deadline"`
	SandboxEpoch int64         `json:"sandbox_epoch"`
	Cancel       bool          `json:"cancel_requested"`
	Steps        []browserStep `json:"steps"`
	Prompt       event.Sealed  `json:"prompt"`
	Answer       event.Sealed  `json:"answer"`
	Code         string        `json:"code"`
	Message      event.Sealed  `json:"message"`
	Input        *int64        `json:"input_tokens"` // the sums of db/projection/run.go
	Output       *int64        `json:"output_tokens"`
}

type browserStep struct {
	Text   event.Sealed  `json:"text"`
	Finish string        `json:"finish"`
	Calls  []browserCall `json:"calls"`
}

type browserCall struct {
	ID          string        `json:"id"`
	Tool        string        `json:"tool"`
	Arguments   event.Sealed  `json:"arguments"`
	State       run.CallState `json:"state"`
	CalledEpoch int64         `json:"called_epoch"`
	Outcome     string        `json:"outcome"`
	ExitCode    *int          `json:"exit_code"`
	Output      event.Sealed  `json:"output"`
	OutputBytes int64         `json:"output_bytes"`
	Truncated   bool          `json:"truncated"`
}

// writeHistory folds the conversations of a world anew, event by event, and answers how many lines it wrote.
func writeHistory(t *testing.T, out *bytes.Buffer, w *world, seed, most int) int {
	t.Helper()
	folded := map[*stream]any{}
	rows := map[event.ID][]browserMessage{}
	usage := map[*stream]*run.Usage{}
	lines := 0
	for i, at := range w.log {
		s := at.stream
		if kind := s.ref.Kind; (kind != conversation.Kind && kind != run.Kind && kind != task.Kind) || lines == most {
			continue
		}
		a, _ := w.registry.Aggregate(s.ref.Kind)
		if folded[s] == nil {
			folded[s], usage[s] = a.Initial(), &run.Usage{}
		}
		e := s.events[at.at]
		folded[s] = a.Evolve(folded[s], e)
		line := browserLine{History: seed, Topic: s.ref.Topic, Event: showEvent(t, s, at, int64(i+1), e)}
		switch state := folded[s].(type) {
		case conversation.State:
			rows[s.ref.ID] = withEvent(rows[s.ref.ID], e)
			line.Thread = showThread(state, rows[s.ref.ID])
		case task.State:
			line.Task = &browserTask{
				Active: known(state.Active), Last: known(state.Last), Attempts: state.Attempts, Title: state.Title.Shown(), Prompt: state.Prompt.Shown(),
			}
		case run.State:
			line.Run = showRun(state, count(usage[s], e))
		}
		out.WriteString(encode(t, line) + "\n")
		lines++
	}
	return lines
}

func showEvent(t *testing.T, s *stream, at entry, position int64, e event.Event) browserEvent {
	t.Helper()
	shown, err := event.MapSealed(e, func(_ string, _ bool, sealed event.Sealed) (event.Sealed, error) { return sealed.Shown(), nil })
	if err != nil {
		t.Fatal(err)
	}
	return browserEvent{
		Position: position, Stream: s.ref.String(), Version: int64(at.at + 1), Kind: e.Kind(), Schema: 1,
		At: at.time.Format("2006-01-02T15:04:05.000000Z07:00"), Actor: at.actor, Data: shown,
	}
}

func withEvent(rows []browserMessage, e event.Event) []browserMessage {
	set := func(turn event.ID, change func(*browserMessage)) {
		for i := range rows {
			if rows[i].Turn == turn {
				change(&rows[i])
			}
		}
	}
	switch e := e.(type) {
	case conversation.MessagePosted:
		rows = append(rows, browserMessage{Turn: e.Turn, State: "waiting"})
	case conversation.TurnStarted:
		set(e.Turn, func(m *browserMessage) { m.State, m.Number = "active", &e.Number })
	case conversation.TurnEnded:
		set(e.Turn, func(m *browserMessage) { m.State = string(e.Outcome) })
	}
	return rows
}

func showThread(s conversation.State, rows []browserMessage) *browserThread {
	out := &browserThread{Waiting: []event.ID{}, Started: s.Started, Turns: append([]browserMessage{}, rows...)}
	if !s.Idle() {
		out.Active = &s.Active.Turn
	}
	for _, turn := range s.Waiting {
		out.Waiting = append(out.Waiting, turn.Turn)
	}
	return out
}

func count(sum *run.Usage, e event.Event) run.Usage {
	if answered, ok := e.(run.ModelAnswered); ok {
		*sum = run.Usage{InputTokens: plus(sum.InputTokens, answered.Usage.InputTokens), OutputTokens: plus(sum.OutputTokens, answered.Usage.OutputTokens)}
	}
	return *sum
}

func plus(sum, more *int64) *int64 {
	if more == nil || sum == nil {
		if sum == nil {
			return more
		}
		return sum
	}
	total := *sum + *more
	return &total
}

// known is null for an id that there is not.
func known(id event.ID) *event.ID {
	if id.IsZero() {
		return nil
	}
	return &id
}

func showRun(s run.State, usage run.Usage) *browserRun {
	out := &browserRun{
		Task: known(s.Task), Attempt: s.Attempt, Status: s.Status, Epoch: s.Epoch, Worker: s.Worker, Host: s.Host, SandboxEpoch: s.Sandbox.Epoch, Cancel: s.CancelRequested,
		Steps: []browserStep{}, Prompt: s.Prompt.Shown(), Answer: s.Answer.Shown(), Code: s.Code, Message: s.Message.Shown(),
		Input: usage.InputTokens, Output: usage.OutputTokens,
	}
	if !s.Deadline.IsZero() {
		out.Deadline = &s.Deadline
	}
	for _, step := range s.Steps {
		shown := browserStep{Text: step.Text.Shown(), Finish: step.Finish, Calls: []browserCall{}}
		for _, c := range step.Calls {
			shown.Calls = append(shown.Calls, browserCall{
				ID: c.ID, Tool: c.Tool, Arguments: c.Arguments.Shown(), State: c.State, CalledEpoch: c.CalledEpoch, Outcome: c.Result.Outcome,
				ExitCode: c.Result.ExitCode, Output: c.Result.Output.Shown(), OutputBytes: c.Result.OutputBytes, Truncated: c.Result.Truncated,
			})
		}
		out.Steps = append(out.Steps, shown)
	}
	return out
}
