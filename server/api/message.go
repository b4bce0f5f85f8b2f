package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"cairn/db/read"
	"cairn/domain/conversation"
	"cairn/domain/event"
)

// Message is what somebody wrote, and what the run that answers it has come to.
type Message struct {
	ID         event.ID  `json:"message_id" format:"uuid"`
	Turn       event.ID  `json:"turn_id" format:"uuid"`
	TurnNumber *int64    `json:"turn_number" doc:"null while the turn waits, and when it never started."`
	Author     string    `json:"author" doc:"The actor, like account/ID."`
	Text       *string   `json:"text"`
	State      string    `json:"state" enum:"waiting,active,succeeded,failed,cancelled" doc:"Of the turn."`
	PostedAt   time.Time `json:"posted_at"`
	Run        event.ID  `json:"run_id" format:"uuid"`
	RunState   string    `json:"run_state" enum:"queued,starting,running,succeeded,failed,cancelled"`
	Answer     *string   `json:"answer" doc:"The agent's, once the run has succeeded."`
	Failure    *string   `json:"failure_code" doc:"Of a failed run."`
}

type messagePostIn struct {
	Keyed
	OneConversation
	Body struct {
		Text  string `json:"text" minLength:"1" maxLength:"1048576" doc:"At most 1 MiB."`
		Model string `json:"model,omitempty" maxLength:"128" doc:"The agent's unless given."`
	}
}

type messagesIn struct {
	OneConversation
	PageIn
}

func (a *API) messageRoutes() {
	register(a, route("GET /conversations/{conversation}/messages", "message-list", "Messages of a conversation"), a.messages)
	post := withStatus(route("POST /conversations/{conversation}/messages", "message-post", "Post a message"), http.StatusAccepted)
	post.Description = "One message is one turn and one run. It starts at once when the conversation is idle, else it waits for its turn. Follow GET /runs/{run}/events."
	register(a, post, a.postMessage)
}

func (a *API) messages(ctx context.Context, in *messagesIn) (*answer[List[Message]], error) {
	row, err := a.conversation(ctx, in.Conversation)
	if err != nil {
		return nil, err
	}
	from, err := in.from("message")
	if err != nil {
		return nil, err
	}
	rows, err := a.DB.Read().MessagePage(ctx, read.MessagePageParams{ConversationID: row.ID, Version: from.n, Lim: int32(in.Limit + 1)})
	if err != nil {
		return nil, fmt.Errorf("messages of conversation %s: %w", row.ID, err)
	}
	show := func(r read.MessagePageRow) Message {
		m := r.Message
		return Message{
			ID: m.ID, Turn: m.TurnID, TurnNumber: m.TurnNumber, Author: m.Author, Text: m.Text, State: m.State, PostedAt: m.PostedAt.UTC(),
			Run: m.RunID, RunState: r.RunState, Answer: r.Answer, Failure: r.FailureCode,
		}
	}
	return page("message", in.Limit, rows, show, func(r read.MessagePageRow) place { return place{at: r.Message.PostedAt, n: r.Message.Version} }), nil
}

func (a *API) postMessage(ctx context.Context, in *messagePostIn) (*answer[conversation.Posted], error) {
	row, err := a.conversation(ctx, in.Conversation)
	if err != nil {
		return nil, err
	}
	command := conversation.PostMessage{Conversation: row.ID, Space: row.SpaceID, Agent: row.AgentID, Text: in.Body.Text, Model: in.Body.Model}
	for _, id := range []*event.ID{&command.Message, &command.Turn, &command.Run} {
		if *id, err = newID(); err != nil {
			return nil, err
		}
	}
	posted, err := decoded[conversation.Posted](a.execute(ctx, command, in.IdempotencyKey, in))
	if err != nil {
		return nil, err
	}
	return reply(posted), nil
}
