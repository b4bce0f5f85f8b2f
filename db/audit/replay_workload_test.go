package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
	"cairn/domain/account"
	"cairn/domain/conversation"
	"cairn/domain/egress"
	"cairn/domain/event"
	"cairn/domain/file"
	"cairn/domain/run"
	"cairn/domain/space"
	"cairn/domain/task"
)

const workerName = "w1"

func options(base *dbtest.Database) audit.ReplayOptions {
	return audit.ReplayOptions{URL: base.URL(""), Keys: base.Keys, Blobs: base.Blobs}
}

// worker executes a command as the worker.
func worker(t testing.TB, d *db.DB, command event.Command) {
	t.Helper()
	dbtest.Must(t, d, event.WorkerActor(workerName), command)
}

// carry takes the run of a posted message through a tool call to its end.
func carry(t testing.TB, d *db.DB, team dbtest.Team, conversationID, runID event.ID, say func(string) string, end run.Ending) {
	t.Helper()
	target := run.Target{Run: runID, Space: team.Space, Conversation: conversationID}
	worker(t, d, run.Start{Target: target, Worker: workerName, Host: "h"})
	worker(t, d, run.RecordSandbox{Target: target, Epoch: 1, Host: "h", Backend: "b", Report: json.RawMessage(`{"a": [1, null]}`)})
	worker(t, d, run.LoseWorker{Target: target, Epoch: 1, Worker: workerName})
	worker(t, d, run.Start{Target: target, Worker: workerName, Host: "h"})
	worker(t, d, run.RecordSandbox{Target: target, Epoch: 2, Host: "h", Backend: "b", Report: json.RawMessage(`null`)})
	tokens, code := int64(7), 0
	worker(t, d, run.RecordAnswer{
		Target: target, Epoch: 2, Step: 1, Model: "demo", Text: say("step"), Finish: "tool_calls", Usage: run.Usage{InputTokens: &tokens},
		Calls: []run.CallWish{{ID: "c1", Tool: "shell", Arguments: say("arguments")}, {ID: "c2", Tool: "read", Arguments: "{}"}},
	})
	worker(t, d, run.CallTool{Target: target, Epoch: 2, Call: "c1"})
	worker(t, d, run.ReturnTool{Target: target, Epoch: 2, Call: "c1", Outcome: run.OutcomeOK, ExitCode: &code, Output: say("output"), OutputBytes: 6})
	path := say("path")
	worker(t, d, run.RecordEgress{Target: target, Epoch: 2, Allowed: 2, Refused: 1, Decisions: []run.EgressWish{
		{Allowed: true, Rule: "list/x.org", Host: say("host"), Port: 443, Method: "GET", Path: &path, Count: 2}, {Reason: "no_rule", Host: say("host"), Port: 443, Method: "CONNECT", Count: 1},
	}})
	worker(t, d, run.ReturnTool{Target: target, Epoch: 2, Call: "c2", Outcome: run.OutcomeError, Output: "not made"})
	worker(t, d, run.RecordLimit{Target: target, Epoch: 2, Limit: "memory", Count: 1, Allowed: 9, By: "kernel"})
	worker(t, d, run.CloseSandbox{Target: target, Epoch: 2, Usage: run.SandboxUsage{CPUUS: &tokens}, WallUS: 5})
	worker(t, d, run.RecordChanges{Target: target, Epoch: 2, Totals: run.ChangeTotals{Files: 1, Added: 1}, Items: stored(t, d, team.Space, "a list of changes")})
	if end.Outcome == run.StatusCancelled {
		dbtest.Must(t, d, team.Actor(), conversation.CancelRun{Conversation: conversationID, Space: team.Space, Run: runID})
	}
	end.Epoch = 2
	worker(t, d, conversation.EndTurn{Conversation: conversationID, Space: team.Space, Run: runID, End: end})
}

// assign makes a task with an attempt of each kind: one failed, one that lost its worker and was cancelled, and one that waits.
func assign(t testing.TB, d *db.DB, team dbtest.Team, say func(string) string) {
	t.Helper()
	opened := team.Assign(t, d, say("prompt"))
	target := run.Target{Run: opened.Run, Space: team.Space, Task: opened.Task}
	worker(t, d, run.Start{Target: target, Worker: workerName, Host: "h"})
	worker(t, d, task.EndRun{Task: opened.Task, Space: team.Space, Run: target.Run, End: run.Ending{Outcome: run.StatusFailed, Code: "broken", Message: say("failure"), Epoch: 1}})
	target.Run = dbtest.NewID()
	dbtest.Must(t, d, team.Actor(), task.Continue{Task: opened.Task, Space: team.Space, Agent: team.Agent, Run: target.Run, Prompt: say("more")})
	worker(t, d, run.Start{Target: target, Worker: workerName, Host: "h"})
	worker(t, d, run.LoseWorker{Target: target, Epoch: 1, Worker: workerName})
	dbtest.Must(t, d, team.Actor(), task.CancelRun{Task: opened.Task, Space: team.Space, Run: target.Run})
	dbtest.Must(t, d, team.Actor(), task.Retry{Task: opened.Task, Space: team.Space, Agent: team.Agent, Run: dbtest.NewID(), Of: target.Run})
}

// stored is content in the blob store, which holds it encrypted.
func stored(t testing.TB, d *db.DB, space event.ID, text string) *event.Content {
	t.Helper()
	s, err := d.StoreContent(t.Context(), space, strings.NewReader(text), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return &s.Content
}

// keep stores two files and removes one.
func keep(t testing.TB, d *db.DB, team dbtest.Team, say func(string) string) {
	t.Helper()
	var uploads []file.Upload
	for _, name := range []string{say("kept"), say("removed")} {
		uploads = append(uploads, file.Upload{
			Path: name, MAC: d.Keys().ClaimMAC("file", name), Digest: strings.Repeat("a", 64), Content: *stored(t, d, team.Space, "what is in a file"), MediaType: "text/plain",
		})
	}
	dbtest.Must(t, d, team.Actor(), file.Store{Space: team.Space, Files: uploads})
	dbtest.Must(t, d, team.Actor(), file.Remove{Space: team.Space, File: file.Stream(team.Space, uploads[1].MAC).ID})
}

func plainly(what string) string { return what }

// busyTeam makes a team whose log has every kind of event but erasures.
func busyTeam(t testing.TB, d *db.DB, say func(string) string) (dbtest.Team, event.ID) {
	t.Helper()
	team := dbtest.NewTeam(t, d, "demo")
	guest := dbtest.NewID()
	email := guest.String() + "@example.test"
	dbtest.Must(t, d, event.System, account.Open{Account: guest, AccountKind: account.Person, Email: email, DisplayName: "Guest", EmailMAC: d.Keys().ClaimMAC("email", email)})
	dbtest.Must(t, d, team.Actor(), space.AddMember{Space: team.Space, Account: guest, Role: space.Auditor})
	dbtest.Must(t, d, team.Actor(), space.ChangeRole{Space: team.Space, Account: guest, Role: space.Member})
	dbtest.Must(t, d, team.Actor(), space.BoundEgress{Space: team.Space, Egress: &egress.Policy{Tier: egress.Registries}})
	id := team.Converse(t, d)
	var runs []event.ID
	for i := range 4 {
		runs = append(runs, team.Post(t, d, id, say(fmt.Sprintf("message %d", i))).Run)
	}
	dbtest.Must(t, d, team.Actor(), conversation.CancelRun{Conversation: id, Space: team.Space, Run: runs[3]}) // still waiting
	carry(t, d, team, id, runs[0], say, run.Ending{Outcome: run.StatusSucceeded, Answer: say("answer")})
	carry(t, d, team, id, runs[1], say, run.Ending{Outcome: run.StatusFailed, Code: "broken", Message: say("failure")})
	carry(t, d, team, id, runs[2], say, run.Ending{Outcome: run.StatusCancelled})
	assign(t, d, team, say)
	keep(t, d, team, say)
	dbtest.Must(t, d, team.Actor(), space.RemoveMember{Space: team.Space, Account: guest})
	return team, id
}

// writers append through pools of their own until stop is called, which answers how many events they wrote.
// They post into shared conversations and cancel what they posted, so that rows are written by several streams.
func writers(t testing.TB, base *dbtest.Database, n int, on ...*db.DB) (stop func() int) {
	t.Helper()
	if len(on) == 0 {
		on = []*db.DB{base.Open(t, dbtest.Server), base.Open(t, dbtest.Server)}
	}
	team := dbtest.NewTeam(t, on[0], "demo")
	hot := team.Converse(t, on[0])
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for i := range n {
		wg.Go(func() {
			d, own, wrote := on[i%len(on)], hot, 0
			if i%2 == 0 {
				own = team.Converse(t, d)
			}
			for ctx.Err() == nil {
				message := team.Message(own, "text")
				for _, command := range []event.Command{message, conversation.CancelRun{Conversation: own, Space: team.Space, Run: message.Run}} {
					result, err := d.Execute(context.Background(), command, dbtest.Meta(team.Actor()))
					if err != nil {
						t.Errorf("writer: %v", err)
						return
					}
					wrote += len(result.Records)
				}
			}
			mu.Lock()
			total += wrote
			mu.Unlock()
		})
	}
	return func() int { cancel(); wg.Wait(); return total }
}
