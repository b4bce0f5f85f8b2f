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

// local is who works at this terminal, and who signs in first: an account with a personal space and a general
// agent, the same for every run on one data folder. Their ids derive from the log's, so that finding them needs no search and
// two first runs at once make them once. An erased account or space is followed by the next one.
type local struct {
	account, space, agent event.ID
	suffix                string // of the space's slug and the agent: empty for the first space, -2 for the second
}

func (l local) actor() string { return event.AccountActor(l.account) }

const localInstructions = "You work in a sandbox on the files in /workspace. Use the tools, and end with a short answer."

// localEmail is where the first account signs in with.
const localEmail = "local@localhost"

// ensureLocal makes what does not exist yet.
func ensureLocal(ctx context.Context, d *db.DB, model string) (local, error) {
	l, err := findLocal(ctx, d)
	if err != nil {
		return l, err
	}
	name := "local"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	email, slug := localEmail, "local"+l.suffix
	steps := []struct {
		stream  event.Ref
		actor   string
		command event.Command
	}{
		{account.Stream(l.account), event.System, account.Open{Account: l.account, AccountKind: account.Person, Email: email, DisplayName: name, EmailMAC: d.Keys().ClaimMAC("email", email)}},
		{space.Stream(l.space), event.System, space.Create{Space: l.space, Personal: true, DisplayName: name, Slug: slug, SlugMAC: d.Keys().ClaimMAC("slug", slug), Owner: l.account}},
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
		_, err = d.Execute(ctx, step.command, event.Meta{Actor: step.actor, At: db.Now(), Key: "cairn/local/" + step.command.Name() + "/" + step.stream.ID.String(), Request: []byte("{}")})
		if err != nil && !fault.Is(err, fault.Conflict) {
			return l, fmt.Errorf("set up the local account: %w", err)
		}
	}
	return l, nil
}

// findLocal names the account and the space in use, or those to be made.
func findLocal(ctx context.Context, d *db.DB) (l local, err error) {
	identity, err := d.Identity(ctx)
	if err != nil {
		return l, err
	}
	id := func(name string) event.ID { return event.NameID(identity.LogID, []byte("cairn/local/"+name)) }
	if _, l.account, err = first(id, "account", func(id event.ID) (bool, error) {
		state, _, err := d.Load(ctx, account.Stream(id))
		a, _ := state.(account.State)
		return !a.Erased, err
	}); err != nil {
		return l, err
	}
	l.suffix, l.space, err = first(id, "space", func(id event.ID) (bool, error) {
		state, version, err := d.Load(ctx, space.Stream(id))
		s, _ := state.(space.State)
		return !s.Erased && (version == 0 || s.Role(l.account) == space.Owner), err // not that of an erased account
	})
	l.agent = id("agent" + l.suffix)
	return l, err
}

// first is the first of name, name-2, name-3 and so on that is fit for use.
func first(id func(string) event.ID, name string, fit func(event.ID) (bool, error)) (suffix string, found event.ID, err error) {
	for n := 2; ; n++ {
		found = id(name + suffix)
		if ok, err := fit(found); ok || err != nil {
			return suffix, found, err
		}
		suffix = fmt.Sprintf("-%d", n)
	}
}
