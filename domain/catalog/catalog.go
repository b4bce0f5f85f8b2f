// Package catalog is the only list of all aggregates, event kinds and commands. What is not listed here
// does not exist for the log.
//
// It may import the standard library and every package of domain.
package catalog

import (
	"cairn/domain/account"
	"cairn/domain/agent"
	"cairn/domain/claim"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
)

// Registry returns all aggregates and their event kinds.
func Registry() *event.Registry {
	return event.NewRegistry(
		account.Aggregate(), agent.Aggregate(), claim.Aggregate(), conversation.Aggregate(), run.Aggregate(), space.Aggregate(),
	)
}

// Commands returns an empty one of each command, for checks that must cover them all.
func Commands() []event.Command {
	return []event.Command{
		account.Open{},
		account.Erase{},
		space.Create{},
		space.AddMember{},
		space.ChangeRole{},
		space.RemoveMember{},
		space.Erase{},
		agent.Revise{},
		conversation.Open{},
		conversation.PostMessage{},
		conversation.EndTurn{},
		conversation.CancelRun{},
		run.Start{},
		run.RecordSandbox{},
		run.RecordLimit{},
		run.CloseSandbox{},
		run.RecordAnswer{},
		run.CallTool{},
		run.ReturnTool{},
		run.Release{},
		run.LoseWorker{},
	}
}
