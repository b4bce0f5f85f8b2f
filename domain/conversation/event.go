package conversation

import (
	"cairn/domain/event"
	"cairn/domain/run"
)

// Opened says that a conversation exists.
type Opened struct {
	Agent  event.ID     `json:"agent"`
	Title  event.Sealed `json:"title"`
	Source run.Source   `json:"source"`
	Mounts []run.Mount  `json:"mounts"`
	Queue  string       `json:"queue"`
}

// Kind implements event.Event.
func (Opened) Kind() string { return "conversation.opened" }

// MessagePosted says that somebody wrote a message, and names the turn and the run that will answer it.
type MessagePosted struct {
	Message event.ID     `json:"message"`
	Turn    event.ID     `json:"turn"`
	Run     event.ID     `json:"run"`
	Author  string       `json:"author"` // the actor
	Text    event.Sealed `json:"text"`
}

// Kind implements event.Event.
func (MessagePosted) Kind() string { return "conversation.message_posted" }

// TurnStarted says that the turn's run may be claimed.
type TurnStarted struct {
	Turn    event.ID `json:"turn"`
	Run     event.ID `json:"run"`
	Message event.ID `json:"message"`
	Number  int64    `json:"number"` // 1, 2, ...
	Queue   string   `json:"queue"`
}

// Kind implements event.Event.
func (TurnStarted) Kind() string { return "conversation.turn_started" }

// TurnEnded says how the turn's run ended.
type TurnEnded struct {
	Turn    event.ID   `json:"turn"`
	Run     event.ID   `json:"run"`
	Outcome run.Status `json:"outcome"` // "succeeded", "failed" or "cancelled"
}

// Kind implements event.Event.
func (TurnEnded) Kind() string { return "conversation.turn_ended" }
