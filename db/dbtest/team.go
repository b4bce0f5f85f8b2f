package dbtest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"cairn/db"
	"cairn/domain/account"
	"cairn/domain/agent"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
	"cairn/domain/task"
)

// Team is an account with a personal space and an agent, made through commands.
type Team struct {
	Account, Space, Agent event.ID
}

// NewID mints an id as the edges do.
func NewID() event.ID { return event.ID(uuid.Must(uuid.NewV7())) }

// Meta is what an edge would know about a command of the actor at this moment.
func Meta(actor string) event.Meta { return event.Meta{Actor: actor, At: time.Now()} }

// Must executes a command as the actor and fails the test when it is refused.
func Must(t testing.TB, d *db.DB, actor string, command event.Command) db.Result {
	t.Helper()
	result, err := d.Execute(context.Background(), command, Meta(actor))
	if err != nil {
		t.Fatalf("%s: %v", command.Name(), err)
	}
	return result
}

// NewTeam opens an account, its space and an agent that uses the model.
func NewTeam(t testing.TB, d *db.DB, model string) Team {
	t.Helper()
	team := Team{Account: NewID(), Space: NewID(), Agent: NewID()}
	email := team.Account.String() + "@example.test"
	Must(t, d, event.System, account.Open{
		Account: team.Account, AccountKind: account.Person, Email: email, DisplayName: "Test Person", EmailMAC: d.Keys().ClaimMAC("email", email),
	})
	Must(t, d, event.System, space.Create{
		Space: team.Space, Personal: true, DisplayName: "Test Space", Slug: "s-" + team.Space.String(), SlugMAC: d.Keys().ClaimMAC("slug", "s-"+team.Space.String()), Owner: team.Account,
	})
	Must(t, d, team.Actor(), agent.Revise{Agent: team.Agent, Space: team.Space, DisplayName: "Test Agent", Model: model, Instructions: "Do it.", Tools: agent.Tools()})
	return team
}

// Actor is the team's person.
func (team Team) Actor() string { return event.AccountActor(team.Account) }

// Converse opens a conversation.
func (team Team) Converse(t testing.TB, d *db.DB) event.ID {
	t.Helper()
	id := NewID()
	Must(t, d, team.Actor(), conversation.Open{Conversation: id, Space: team.Space, Agent: team.Agent, Title: "Test", Source: run.Source{Kind: run.SourceNone}})
	return id
}

// Assign opens a task and answers its ids.
func (team Team) Assign(t testing.TB, d *db.DB, prompt string) task.Answer {
	t.Helper()
	open := task.Open{
		Task: NewID(), Space: team.Space, Agent: team.Agent, Run: NewID(), Title: "Test", Prompt: prompt, Source: run.Source{Kind: run.SourceNone},
	}
	Must(t, d, team.Actor(), open)
	return task.Answer{Task: open.Task, Run: open.Run}
}

// Message is a command that posts text with fresh ids.
func (team Team) Message(conversationID event.ID, text string) conversation.PostMessage {
	return conversation.PostMessage{Conversation: conversationID, Space: team.Space, Agent: team.Agent, Message: NewID(), Turn: NewID(), Run: NewID(), Text: text}
}

// Post posts a message and answers its ids.
func (team Team) Post(t testing.TB, d *db.DB, conversationID event.ID, text string) conversation.Posted {
	t.Helper()
	var posted conversation.Posted
	if err := json.Unmarshal(Must(t, d, team.Actor(), team.Message(conversationID, text)).Answer, &posted); err != nil {
		t.Fatal(err)
	}
	return posted
}
