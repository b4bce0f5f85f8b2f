package conversation

import (
	"cairn/domain/agent"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
)

// Open makes a conversation with an agent. Everyone who works in the space may.
type Open struct {
	Conversation event.ID    `json:"conversation"`
	Space        event.ID    `json:"space"`
	Agent        event.ID    `json:"agent"`
	Title        string      `json:"title"`
	Source       run.Source  `json:"source"`
	Mounts       []run.Mount `json:"mounts"`
	Queue        string      `json:"queue"` // empty: DefaultQueue
}

// Name implements event.Command.
func (Open) Name() string { return "conversation.open" }

// Streams implements event.Command.
func (c Open) Streams() []event.Ref {
	return []event.Ref{Stream(c.Conversation, c.Space), space.Stream(c.Space), agent.Stream(c.Agent, c.Space)}
}

// Answer implements event.Command.
func (c Open) Answer() any { return Answer{Conversation: c.Conversation} }

// PostMessage adds a message, its turn and its run. Everyone who works in the space may.
type PostMessage struct {
	Conversation event.ID `json:"conversation"`
	Space        event.ID `json:"space"`
	Agent        event.ID `json:"agent"`   // of the conversation; its newest revision is pinned on the run
	Message      event.ID `json:"message"` // new
	Turn         event.ID `json:"turn"`    // new
	Run          event.ID `json:"run"`     // new
	Text         string   `json:"text"`    // 1 byte to 1 MiB
	Model        string   `json:"model"`   // empty: the agent's
}

// Name implements event.Command.
func (PostMessage) Name() string { return "conversation.post_message" }

// Streams implements event.Command.
func (c PostMessage) Streams() []event.Ref {
	return []event.Ref{
		Stream(c.Conversation, c.Space), run.Stream(c.Run, c.Space, c.Conversation),
		space.Stream(c.Space), agent.Stream(c.Agent, c.Space),
	}
}

// Answer implements event.Command.
func (c PostMessage) Answer() any { return Posted{Message: c.Message, Turn: c.Turn, Run: c.Run} }

// RetryRun asks the message of an ended run again, as a new message with a turn and a run of its own. Everyone
// who works in the space may.
type RetryRun struct {
	Conversation event.ID `json:"conversation"`
	Space        event.ID `json:"space"`
	Agent        event.ID `json:"agent"`   // of the conversation
	Of           event.ID `json:"of"`      // the run that is repeated
	Message      event.ID `json:"message"` // new
	Turn         event.ID `json:"turn"`    // new
	Run          event.ID `json:"run"`     // new
	Model        string   `json:"model"`   // empty: that of the repeated run
}

// Name implements event.Command.
func (RetryRun) Name() string { return "conversation.retry_run" }

// Streams implements event.Command.
func (c RetryRun) Streams() []event.Ref {
	return []event.Ref{
		Stream(c.Conversation, c.Space), run.Stream(c.Run, c.Space, c.Conversation), run.Stream(c.Of, c.Space, c.Conversation),
		space.Stream(c.Space), agent.Stream(c.Agent, c.Space),
	}
}

// Answer implements event.Command.
func (c RetryRun) Answer() any { return Posted{Message: c.Message, Turn: c.Turn, Run: c.Run} }

// EndTurn ends the active turn with its run and starts the next one. The worker that holds the run does it.
type EndTurn struct {
	Conversation event.ID   `json:"conversation"`
	Space        event.ID   `json:"space"`
	Run          event.ID   `json:"run"`
	End          run.Ending `json:"end"`
}

// Name implements event.Command.
func (EndTurn) Name() string { return "conversation.end_turn" }

// Streams implements event.Command.
func (c EndTurn) Streams() []event.Ref {
	return []event.Ref{Stream(c.Conversation, c.Space), run.Stream(c.Run, c.Space, c.Conversation)}
}

// Answer implements event.Command.
func (c EndTurn) Answer() any { return run.Answer{Run: c.Run} }

// CancelRun ends a run that nobody holds, or asks the worker that holds it to end it. Everyone who works
// in the space may.
type CancelRun struct {
	Conversation event.ID `json:"conversation"`
	Space        event.ID `json:"space"`
	Run          event.ID `json:"run"`
}

// Name implements event.Command.
func (CancelRun) Name() string { return "conversation.cancel_run" }

// Streams implements event.Command.
func (c CancelRun) Streams() []event.Ref {
	return []event.Ref{
		Stream(c.Conversation, c.Space), run.Stream(c.Run, c.Space, c.Conversation), space.Stream(c.Space),
	}
}

// Answer implements event.Command.
func (c CancelRun) Answer() any { return run.Answer{Run: c.Run} }

// Answer names the conversation that a command was about.
type Answer struct {
	Conversation event.ID `json:"conversation_id"`
}

// Posted names what a message brought into being.
type Posted struct {
	Message event.ID `json:"message_id"`
	Turn    event.ID `json:"turn_id"`
	Run     event.ID `json:"run_id"`
}
