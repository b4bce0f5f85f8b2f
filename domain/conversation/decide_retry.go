package conversation

import (
	"cairn/domain/check"
	"cairn/domain/event"
	"cairn/domain/run"
)

// Decide implements event.Command.
func (c RetryRun) Decide(view event.View, meta event.Meta) ([]event.Change, error) {
	if err := requireDoer(view, c.Space, meta); err != nil {
		return nil, err
	}
	state, err := requireOpened(view, c.Conversation, c.Space)
	if err != nil {
		return nil, err
	}
	of := event.StateOf[run.State](view, run.Stream(c.Of, c.Space, c.Conversation))
	if err := of.RequireEnded(c.Of); err != nil {
		return nil, err
	}
	message := c.message(of)
	if err := check.First(message.check(), message.requireAgent(state)); err != nil {
		return nil, err
	}
	return message.post(view, state, meta, func(q *run.Queued) { q.Attempt, q.RetryOf = of.Attempt+1, c.Of })
}

// message is the one that asks again: the same text and, unless another is named, the same model.
func (c RetryRun) message(of run.State) PostMessage {
	model := c.Model
	if model == "" {
		model = of.Model
	}
	return PostMessage{
		Conversation: c.Conversation, Space: c.Space, Agent: c.Agent, Message: c.Message, Turn: c.Turn, Run: c.Run,
		Text: of.Prompt.Text(), Model: model,
	}
}
