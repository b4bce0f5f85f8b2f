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

// Conversation is a thread between people and an agent.
type Conversation struct {
	ID        event.ID  `json:"conversation_id" format:"uuid"`
	Space     event.ID  `json:"space_id" format:"uuid"`
	Agent     event.ID  `json:"agent_id" format:"uuid"`
	Title     *string   `json:"title"`
	Turns     int64     `json:"turns" doc:"That have started."`
	Waiting   int64     `json:"waiting" doc:"Messages that wait for their turn."`
	ActiveRun *event.ID `json:"active_run_id" format:"uuid" doc:"null while no turn is active."`
	Source    Source    `json:"source" doc:"What its workspace begins with."`
	OpenedBy  string    `json:"opened_by" doc:"The actor, like account/ID."`
	OpenedAt  time.Time `json:"opened_at"`
	ChangedAt time.Time `json:"changed_at"`
	Version   int64     `json:"version"`
}

// ConversationOpened names a new conversation.
type ConversationOpened struct {
	Conversation event.ID `json:"conversation_id" format:"uuid"`
	Version      int64    `json:"version"`
}

type conversationOpenIn struct {
	Keyed
	Space event.ID `path:"space" format:"uuid"`
	Body  struct {
		Agent event.ID `json:"agent_id" format:"uuid" doc:"Of the same space."`
		Title string   `json:"title" minLength:"1" maxLength:"400" doc:"One line, at most 400 bytes."`

		Source *SourceIn `json:"source,omitempty" doc:"Nothing unless given."`
	}
}

// OneConversation is the path of one.
type OneConversation struct {
	Conversation event.ID `path:"conversation" format:"uuid"`
}

type conversationsIn struct {
	InSpace
	SearchIn
	State string `query:"state" enum:"active,idle" doc:"active: a turn is under way."`
}

// active is null when both states are wanted.
func (in *conversationsIn) active() *bool {
	if in.State == "" {
		return nil
	}
	active := in.State == "active"
	return &active
}

func (a *API) conversationRoutes() {
	list := route("GET /spaces/{space}/conversations", "conversation-list", "Conversations of a space")
	list.Description = "The last changed first. One that changes while you page moves to the front."
	register(a, list, a.conversations)
	open := withStatus(route("POST /spaces/{space}/conversations", "conversation-open", "Open a conversation with an agent"), http.StatusCreated)
	open.Description = "The workspace of its first run begins with the source, later ones with what the turns before left. Files are those that the space has at this moment: what is stored later does not reach the conversation."
	register(a, open, a.openConversation)
	register(a, route("GET /conversations/{conversation}", "conversation-get", "A conversation"), a.getConversation)
}

func showConversation(r read.Conversation) Conversation {
	return Conversation{
		ID: r.ID, Space: r.SpaceID, Agent: r.AgentID, Title: r.Title, Turns: r.Turns, Waiting: r.Waiting, ActiveRun: r.ActiveRun,
		Source:   Source{Kind: r.SourceKind, Folder: r.SourceFolder, Files: r.SourceFiles, Bytes: r.SourceBytes, Manifest: r.SourceManifest, Root: r.SourceRoot, Path: r.SourcePath},
		OpenedBy: r.OpenedBy, OpenedAt: r.OpenedAt.UTC(), ChangedAt: r.ChangedAt.UTC(), Version: r.Version,
	}
}

func (a *API) conversations(ctx context.Context, in *conversationsIn) (*answer[List[Conversation]], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	from, err := in.from("conversation")
	if err != nil {
		return nil, err
	}
	title, err := in.title()
	if err != nil {
		return nil, err
	}
	rows, err := a.DB.Read().ConversationPage(ctx, read.ConversationPageParams{
		SpaceID: in.Space, At: from.at, ID: from.id, AgentID: in.agent(), Title: title, Active: in.active(), Lim: int32(in.Limit + 1),
	})
	if err != nil {
		return nil, fmt.Errorf("conversations of space %s: %w", in.Space, err)
	}
	return page("conversation", in.Limit, rows, showConversation, func(r read.Conversation) place { return place{at: r.ChangedAt, id: r.ID} }), nil
}

func (a *API) openConversation(ctx context.Context, in *conversationOpenIn) (*answer[ConversationOpened], error) {
	if err := a.space(ctx, in.Space); err != nil {
		return nil, err
	}
	source, err := a.source(ctx, in.Space, in.Body.Source)
	if err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	opened, err := decoded[conversation.Answer](a.execute(ctx, conversation.Open{
		Conversation: id, Space: in.Space, Agent: in.Body.Agent, Title: in.Body.Title, Source: source,
	}, in.IdempotencyKey, in))
	if err != nil {
		return nil, err
	}
	return reply(ConversationOpened{Conversation: opened.Conversation, Version: 1}), nil
}

func (a *API) getConversation(ctx context.Context, in *OneConversation) (*answer[Conversation], error) {
	row, err := a.conversation(ctx, in.Conversation)
	if err != nil {
		return nil, err
	}
	return reply(showConversation(row)), nil
}
