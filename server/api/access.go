package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"cairn/db"
	"cairn/db/read"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// missing is the one answer to what does not exist and to what the caller may not know of.
func missing(noun string, id event.ID) error {
	return fault.New(fault.NotFound, noun+"_not_found", "%s %s does not exist for you: check its id, or ask an owner of its space to add you", noun, id)
}

// requireMember lets every member of a space that is not erased pass, an auditor too. To strangers the thing of
// that space that they asked for does not exist. What a member may change is decided by the command.
func (a *API) requireMember(ctx context.Context, space event.ID, noun string, id event.ID) error {
	_, err := a.DB.Read().SpaceRole(ctx, read.SpaceRoleParams{SpaceID: space, AccountID: account(ctx)})
	if db.IsNotFound(err) {
		return missing(noun, id)
	}
	if err != nil {
		return fmt.Errorf("role in space %s: %w", space, err)
	}
	return nil
}

func (a *API) space(ctx context.Context, id event.ID) error {
	return a.requireMember(ctx, id, "space", id)
}

func (a *API) conversation(ctx context.Context, id event.ID) (read.Conversation, error) {
	return found(ctx, a, "conversation", id, a.DB.Read().ConversationByID, func(r read.Conversation) event.ID { return r.SpaceID })
}

func (a *API) agent(ctx context.Context, id event.ID) (read.Agent, error) {
	return found(ctx, a, "agent", id, a.DB.Read().AgentByID, func(r read.Agent) event.ID { return r.SpaceID })
}

func (a *API) task(ctx context.Context, id event.ID) (read.TaskByIDRow, error) {
	return found(ctx, a, "task", id, a.DB.Read().TaskByID, func(r read.TaskByIDRow) event.ID { return r.Task.SpaceID })
}

func (a *API) run(ctx context.Context, id event.ID) (read.Run, error) {
	return found(ctx, a, "run", id, a.DB.Read().RunByID, func(r read.Run) event.ID { return r.SpaceID })
}

// found reads a row and checks that the caller is a member of its space.
func found[R any](ctx context.Context, a *API, noun string, id event.ID, query func(context.Context, event.ID) (R, error), space func(R) event.ID) (R, error) {
	row, err := query(ctx, id)
	if db.IsNotFound(err) {
		return row, missing(noun, id)
	}
	if err != nil {
		return row, fmt.Errorf("%s %s: %w", noun, id, err)
	}
	return row, a.requireMember(ctx, space(row), noun, id)
}

// Keyed is what every POST takes that appends to the log.
type Keyed struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"200" pattern:"^[!-~]*$" doc:"The same key and request get the first answer again for 30 days; another request under the same key answers 409."`
}

// execute is the way of every write. request is what the caller asked for without the ids that were minted for it.
func (a *API) execute(ctx context.Context, command event.Command, key string, request any) (db.Result, error) {
	meta := event.Meta{Actor: event.AccountActor(account(ctx)), At: db.Now()}
	if key != "" {
		canonical, err := json.Marshal(request)
		if err != nil {
			return db.Result{}, fmt.Errorf("request of %s: %w", command.Name(), err)
		}
		// Keys of this interface are apart from those that Cairn uses itself for the same account.
		meta.Key, meta.Request = "api/"+key, canonical
	}
	return a.DB.Execute(ctx, command, meta)
}

// decoded reads the ids of a command's answer: for a repetition they are those of the first time.
func decoded[T any](result db.Result, err error) (T, error) {
	var out T
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(result.Answer, &out); err != nil {
		return out, fmt.Errorf("answer of a command: %w", err)
	}
	return out, nil
}

// version is the stream's version after a command, or as it is now when the command had nothing to do.
func (a *API) version(ctx context.Context, stream event.Ref, result db.Result) (int64, error) {
	var version int64
	for _, r := range result.Records {
		if r.StreamID == stream.ID {
			version = r.Version
		}
	}
	if version > 0 {
		return version, nil
	}
	_, version, err := a.DB.Load(ctx, stream)
	return version, err
}

func newID() (event.ID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return event.ID{}, fmt.Errorf("id: %w", err)
	}
	return event.ID(id), nil
}
