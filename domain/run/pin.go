package run

import (
	"cairn/domain/agent"
	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// Pin begins a run with all that it keeps of its agent, so that a later revision changes nothing. The
// instructions and the prompt are sealed anew, since a stored form is bound to its own stream; instructions
// that cannot be read are refused. An empty model means the agent's.
func Pin(id event.ID, a agent.State, model, prompt string) (Queued, error) {
	if err := check.Readable("the agent's instructions", "revise the agent first", a.Instructions); err != nil {
		return Queued{}, err
	}
	if model == "" {
		model = a.Model
	}
	return Queued{
		Agent: id, Revision: a.Revision, Model: model, Prompt: event.Seal(prompt), Instructions: event.Seal(a.Instructions.Text()),
		Tools: append([]string{}, a.Tools...), Limits: a.Limits,
	}, nil
}

// Active is the refusal of another attempt while a run goes on.
func Active(id event.ID) error {
	return fault.New(fault.Conflict, "run_active", "run %s has not ended: wait for its end, or cancel it", id)
}

// RequireEnded refuses to repeat a run that does not exist or goes on.
func (s State) RequireEnded(id event.ID) error {
	switch {
	case s.Status == "":
		return s.requireOpen()
	case !s.Status.Terminal():
		return Active(id)
	}
	return check.Readable("the run's prompt", "ask anew", s.Prompt)
}
