package main

import (
	"context"
	"fmt"
	"os/user"

	"cairn/db"
	"cairn/domain/account"
	"cairn/domain/agent"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/space"
)

// local is who works at this terminal, and who signs in first: an account with a personal space and a general agent, the same for
// every run on one data folder. Their ids derive from the log's, so that finding them needs no search and
// two first runs at once make them once.
type local struct {
	account, space, agent event.ID
}

func (l local) actor() string { return event.AccountActor(l.account) }

const localInstructions = "You work in a sandbox on the files in /workspace. Use the tools, and end with a short answer."

// localEmail is where the first account signs in with.
const localEmail = "local@localhost"

// ensureLocal makes what does not exist yet.
func ensureLocal(ctx context.Context, d *db.DB, model string) (local, error) {
	identity, err := d.Identity(ctx)
	if err != nil {
		return local{}, err
	}
	id := func(name string) event.ID { return event.NameID(identity.LogID, []byte("cairn/local/"+name)) }
	l := local{account: id("account"), space: id("space"), agent: id("agent")}
	name := "local"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	email := localEmail
	steps := []struct {
		stream  event.Ref
		actor   string
		command event.Command
	}{
		{account.Stream(l.account), event.System, account.Open{Account: l.account, AccountKind: account.Person, Email: email, DisplayName: name, EmailMAC: d.Keys().ClaimMAC("email", email)}},
		{space.Stream(l.space), event.System, space.Create{Space: l.space, Personal: true, DisplayName: name, Slug: "local", SlugMAC: d.Keys().ClaimMAC("slug", "local"), Owner: l.account}},
		{agent.Stream(l.agent, l.space), l.actor(), agent.Revise{Agent: l.agent, Space: l.space, DisplayName: "local", Model: model, Instructions: localInstructions, Tools: agent.Tools()}},
	}
	for _, step := range steps {
		_, version, err := d.Load(ctx, step.stream)
		if err != nil {
			return l, err
		}
		if version > 0 {
			continue
		}
		_, err = d.Execute(ctx, step.command, event.Meta{Actor: step.actor, At: db.Now(), Key: "cairn/local/" + step.command.Name(), Request: []byte("{}")})
		if err != nil && !fault.Is(err, fault.Conflict) {
			return l, fmt.Errorf("set up the local account: %w", err)
		}
	}
	return l, nil
}
