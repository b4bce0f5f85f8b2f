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
	"cairn/domain/file"
	"cairn/domain/run"
	"cairn/domain/space"
	"cairn/domain/task"
)

// Registry returns all aggregates and their event kinds.
func Registry() *event.Registry {
	return event.NewRegistry(
		account.Aggregate(), agent.Aggregate(), claim.Aggregate(), conversation.Aggregate(), file.Aggregate(), run.Aggregate(), space.Aggregate(),
		task.Aggregate(),
	)
}

// Commands returns an empty one of each command, for checks that must cover them all.
func Commands() []event.Command {
	return []event.Command{
		account.Open{},
		account.Erase{},
		account.Disable{},
		account.Enable{},
		account.OpenSession{},
		account.RevokeSession{},
		account.ChangePassword{},
		account.RecordDenial{},
		account.CountDenials{},
		space.Create{},
		space.AddMember{},
		space.ChangeRole{},
		space.RemoveMember{},
		space.BoundEgress{},
		space.Erase{},
		agent.Revise{},
		conversation.Open{},
		conversation.PostMessage{},
		conversation.RetryRun{},
		conversation.EndTurn{},
		conversation.CancelRun{},
		task.Open{},
		task.Continue{},
		task.Retry{},
		task.EndRun{},
		task.CancelRun{},
		file.Store{},
		file.Remove{},
		run.Start{},
		run.RecordSandbox{},
		run.RecordEgress{},
		run.RecordLimit{},
		run.CloseSandbox{},
		run.RecordAnswer{},
		run.CallTool{},
		run.ReturnTool{},
		run.RecordChanges{},
		run.Release{},
		run.LoseWorker{},
	}
}
