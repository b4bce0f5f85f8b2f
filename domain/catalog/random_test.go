package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/domain/account"
	"cairn/domain/agent"
	"cairn/domain/claim"
	"cairn/domain/conversation"
	"cairn/domain/egress"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/file"
	"cairn/domain/run"
	"cairn/domain/space"
	"cairn/domain/task"
)

// TestRandomCommands runs random sequences of fitting and unfitting commands over all aggregates. world
// checks each step; at the end every run is driven to its end, and no message may be left without a turn.
func TestRandomCommands(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		g := gen{T: t, w: newWorld(t)}
		g.w.setUp()
		for range 150 {
			c := g.command()
			code := "ok"
			if err := g.w.execute(g.actor(c), c); err != nil {
				code = err.(*fault.Fault).Code
			}
			seen[c.Name()+" "+code]++
			g.w.check()
		}
		g.w.drain()
	})
	// The generators are part of the proof: each command must have been accepted now and then.
	for _, c := range allCommands() {
		if seen[c+" ok"] == 0 && !testing.Short() {
			t.Errorf("%s was never accepted: %v", c, seen)
		}
	}
}

func (w *world) setUp() {
	for i := range 3 {
		w.must(event.System, account.Open{
			Account: id("account", i), AccountKind: account.Person, Email: fmt.Sprintf("p%d@example.org", i),
			DisplayName: fmt.Sprintf("Person %d", i), EmailMAC: mac("email", i),
		})
	}
	for i := range 2 {
		s := id("space", i)
		w.must(event.System, space.Create{Space: s, DisplayName: "Space", Slug: "space", SlugMAC: mac("slug", i), Owner: id("account", i)})
		w.must(event.System, agent.Revise{Agent: id("agent", i), Space: s, DisplayName: "A", Model: "demo", Instructions: "Work.", Tools: agent.Tools()})
		w.must(event.System, conversation.Open{Conversation: id("conversation", i), Space: s, Agent: id("agent", i), Title: "T", Source: run.Source{Kind: "none"}})
		w.must(event.AccountActor(id("account", i)), task.Open{
			Task: id("task", i), Space: s, Agent: id("agent", i), Run: id("first run", i), Title: "T", Prompt: "P", Source: run.Source{Kind: "none"},
		})
	}
	w.must(event.System, space.AddMember{Space: id("space", 0), Account: id("account", 2), Role: space.Auditor})
}

func mac(kind string, n int) []byte {
	long := make([]byte, 32)
	copy(long, fmt.Sprintf("%s %d", kind, n))
	return long
}

// gen draws commands. Most of them fit the state, so that sequences get somewhere; ids, epochs and actors
// are wrong now and then.
type gen struct {
	*rapid.T
	w *world
}

// one draws evenly: rapid's integers lean to the small ones, and sequences would get nowhere.
func (g gen) one(label string, n int) int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return rapid.SampledFrom(all).Draw(g.T, label)
}

func (g gen) rarely(label string) bool { return g.one(label, 12) == 0 }

func (g gen) pick(kind string, n int) event.ID { return id(kind, g.one(kind, n)) }

func (g gen) role() space.Role {
	return rapid.SampledFrom([]space.Role{space.Owner, space.Admin, space.Member, space.Auditor, "king"}).Draw(g.T, "role")
}

func (g gen) actor(c event.Command) string {
	if g.rarely("other actor") {
		return rapid.SampledFrom([]string{
			event.AccountActor(id("account", 0)), event.AccountActor(id("account", 2)),
			event.AccountActor(id("nobody", 0)), "worker/a", "worker/b", "worker/", "root", "",
		}).Draw(g.T, "actor")
	}
	if start, ok := c.(run.Start); ok {
		return event.WorkerActor(start.Worker)
	}
	if t, ok := c.(interface{ Stream() event.Ref }); ok {
		if r := g.w.state(t.Stream()).(run.State); r.Worker != "" {
			return event.WorkerActor(r.Worker)
		}
	}
	return rapid.SampledFrom([]string{event.System, event.AccountActor(id("account", 0)), event.AccountActor(id("account", 1))}).Draw(g.T, "actor")
}

func (g gen) command() event.Command {
	switch g.one("area", 11) {
	case 10:
		return g.filing()
	case 0:
		return g.tenancy()
	case 1:
		return g.authoring()
	case 2:
		return g.thread()
	case 3:
		return g.task()
	default:
		return g.work()
	}
}

func (g gen) tenancy() event.Command {
	n := g.one("n", 4)
	s := g.pick("space", 3)
	switch g.one("command", 8) {
	case 0:
		return account.Open{Account: id("account", n), AccountKind: "service", Email: "s@example.org", DisplayName: "S", EmailMAC: mac("email", g.one("mac", 5))}
	case 1:
		return account.Erase{Account: id("account", n), Claim: claim.Stream(mac("email", n)).ID}
	case 2:
		return space.Create{Space: s, DisplayName: "N", Slug: "n", SlugMAC: mac("slug", g.one("mac", 4)), Owner: id("account", n)}
	case 3:
		return space.AddMember{Space: s, Account: id("account", n), Role: g.role()}
	case 4:
		return space.ChangeRole{Space: s, Account: id("account", n), Role: g.role()}
	case 5:
		return space.RemoveMember{Space: s, Account: id("account", n)}
	case 6:
		return g.access(id("account", n))
	}
	switch g.one("erase a space", 5) {
	case 1:
		return space.BoundEgress{Space: s, Egress: &egress.Policy{Tier: rapid.SampledFrom(append(egress.Tiers(), "all")).Draw(g.T, "tier")}}
	case 2, 3, 4:
		return space.AddMember{Space: s, Account: id("account", n), Role: g.role()}
	}
	return space.Erase{Space: s, Claim: g.w.state(space.Stream(s)).(space.State).Claim}
}

// access draws what an account's stream says of signing in and of refusals.
func (g gen) access(a event.ID) event.Command {
	session := g.pick("session", 2)
	switch g.one("command", 8) {
	case 0:
		return account.Disable{Account: a}
	case 1, 2:
		return account.Enable{Account: a}
	case 3:
		return account.OpenSession{Account: a, Session: session, Method: account.MethodCode}
	case 4:
		return account.RevokeSession{Account: a, Session: session, Reason: account.ReasonLogout}
	case 5:
		return account.ChangePassword{Account: a, Session: session}
	case 6:
		return account.RecordDenial{Account: a, Route: "GET /api/v1/me", Rule: "role_too_low", Target: &session}
	}
	return account.CountDenials{Account: a, Denials: int64(g.one("denials", 3)), Since: g.w.now}
}

func (g gen) authoring() event.Command {
	a, s := g.one("agent", 3), g.one("space", 2)
	if g.one("command", 2) == 0 {
		expected := int64(g.one("revision", 3))
		limits := agent.AskedLimits{}
		if g.rarely("a limit") {
			calls := int64(g.one("calls", 3))
			limits.ModelCalls = &calls
		}
		return agent.Revise{Agent: id("agent", a), Space: id("space", s), DisplayName: "A", Model: "demo", Tools: agent.Tools()[:g.one("tools", 6)], Limits: limits, ExpectedRevision: &expected}
	}
	if g.one("command", 2) == 0 {
		n := g.one("task", 4)
		return task.Open{
			Task: id("task", n), Space: id("space", s), Agent: id("agent", a), Run: id("first run", n), Title: "T", Prompt: "P",
			Source: run.Source{Kind: rapid.SampledFrom([]string{"none", "folder"}).Draw(g.T, "source")},
		}
	}
	return conversation.Open{Conversation: g.pick("conversation", 4), Space: id("space", s), Agent: id("agent", a), Title: "T", Source: run.Source{Kind: rapid.SampledFrom([]string{"none", "folder"}).Draw(g.T, "source"), Root: ""}}
}

// content is a reference that fits the space, but now and then.
func (g gen) content(space event.ID) *event.Content {
	if g.rarely("other space") {
		space = id("space", 2)
	}
	return &event.Content{Key: space, Blob: strings.Repeat("a", 64), Size: 3}
}

// filing stores and removes files of a few paths that exclude each other.
func (g gen) filing() event.Command {
	s := g.pick("space", 2)
	if g.one("command", 3) == 0 {
		return file.Remove{Space: s, File: file.Stream(s, mac("path", g.one("path", 4))).ID}
	}
	c := file.Store{Space: s}
	for range 1 + g.one("files", 2) {
		n := g.one("path", 4)
		u := file.Upload{Path: []string{"a", "a/b", "c", "../d"}[n], MAC: mac("path", n), Digest: strings.Repeat(string(rune('0'+g.one("digest", 3))), 64), Content: *g.content(s), MediaType: "text/plain"}
		if n == 1 {
			u.Parents = [][]byte{mac("path", 0)}
		} else if n == 3 {
			u.Parents = [][]byte{mac("path", 9)}
		}
		c.Files = append(c.Files, u)
	}
	return c
}

// target is a run of the world, or now and then one that is not there or not in that conversation.
func (g gen) target() run.Target {
	var runs []event.Ref
	for _, id := range g.w.order {
		if s := g.w.streams[id]; s.ref.Kind == run.Kind && !s.state.(run.State).Status.Terminal() {
			runs = append(runs, s.ref)
		}
	}
	if len(runs) == 0 || g.rarely("other run") {
		return run.Target{Run: g.pick("run", 6), Space: g.pick("space", 2), Conversation: g.pick("conversation", 2)}
	}
	ref := runs[g.one("which", min(3, len(runs)))]
	return run.TargetOf(ref, g.w.state(ref).(run.State))
}

// ended is a run of a topic that has ended, or now and then one that has not or is not there.
func (g gen) ended(topic event.ID) event.ID {
	var runs []event.ID
	for _, id := range g.w.order {
		if s := g.w.streams[id]; s.ref.Kind == run.Kind && s.ref.Topic == topic && (s.state.(run.State).Status.Terminal() || g.rarely("not ended")) {
			runs = append(runs, id)
		}
	}
	if len(runs) == 0 || g.rarely("other run") {
		return g.pick("run", 6)
	}
	return rapid.SampledFrom(runs).Draw(g.T, "of")
}

func (g gen) task() event.Command {
	n, fresh := g.one("task", 2), id("run", len(g.w.order))
	in, worker := id("space", n), id("agent", n)
	if g.rarely("used run") {
		fresh = g.pick("run", 12)
	}
	prompt := rapid.SampledFrom([]string{"more", "", "\x00"}).Draw(g.T, "prompt")
	switch g.one("command", 4) {
	case 0:
		return task.Continue{Task: id("task", n), Space: in, Agent: worker, Run: fresh, Prompt: prompt}
	case 1:
		return task.Retry{Task: id("task", n), Space: in, Agent: worker, Run: fresh}
	case 2:
		return task.Retry{Task: id("task", n), Space: in, Agent: worker, Run: fresh, Of: g.ended(id("task", n))}
	}
	t := g.target()
	return task.CancelRun{Task: t.Topic(), Space: t.Space, Run: t.Run}
}

func (g gen) thread() event.Command {
	c := g.one("conversation", 2)
	if g.one("command", 4) == 0 {
		t := g.target()
		return conversation.CancelRun{Conversation: t.Conversation, Space: t.Space, Run: t.Run}
	}
	n := len(g.w.order)
	if g.rarely("used ids") {
		n = g.one("n", 12)
	}
	if g.one("retry", 4) == 0 {
		return conversation.RetryRun{
			Conversation: id("conversation", c), Space: id("space", c), Agent: id("agent", c), Of: g.ended(id("conversation", c)),
			Message: id("message", n), Turn: id("turn", n), Run: id("run", n),
		}
	}
	return conversation.PostMessage{
		Conversation: id("conversation", c), Space: id("space", c), Agent: id("agent", c),
		Message: id("message", n), Turn: id("turn", n), Run: id("run", n), Text: rapid.SampledFrom([]string{"hello", "\x00", "ü", "$ ls"}).Draw(g.T, "text"),
	}
}

// work is what a worker does next, or something else that a worker can do.
func (g gen) work() event.Command {
	t := g.target()
	s := g.w.state(t.Stream()).(run.State)
	epoch := s.Epoch
	if g.rarely("old epoch") {
		epoch--
	}
	if s.Status == run.StatusQueued {
		return run.Start{Target: t, Worker: rapid.SampledFrom([]string{"a", "b"}).Draw(g.T, "worker"), Host: "h"}
	}
	if s.Sandbox.Epoch != s.Epoch && !g.rarely("no sandbox") {
		return run.RecordSandbox{Target: t, Epoch: epoch, Host: "h", Backend: "native", Cgroup: "/c", Upper: "/u", Report: json.RawMessage(`{}`)}
	}
	switch g.one("move", 14) {
	case 5:
		path := rapid.SampledFrom([]string{"/", "/v1/x"}).Draw(g.T, "path")
		return run.RecordEgress{Target: t, Epoch: epoch, Refused: 1, Decisions: []run.EgressWish{{Host: "x.org", Port: 443, Method: "GET", Path: &path, Reason: "path", Count: int64(g.one("count", 3))}}}
	case 12:
		return run.RecordLimit{Target: t, Epoch: epoch, Limit: rapid.SampledFrom([]string{"memory", "odd"}).Draw(g.T, "limit"), Count: 1, By: "kernel"}
	case 13:
		return run.CloseSandbox{Target: t, Epoch: epoch}
	case 0:
		return run.LoseWorker{Target: t, Epoch: epoch, Worker: s.Worker}
	case 1:
		return run.Release{Target: t, Epoch: epoch}
	case 2:
		return g.call(t, s, epoch)
	case 4:
		return run.RecordChanges{Target: t, Epoch: epoch, Totals: run.ChangeTotals{Files: 1, Added: 1}, Items: g.content(t.Space)}
	case 3:
		return endTurn(t, run.Ending{Outcome: rapid.SampledFrom([]run.Status{"succeeded", "failed", "cancelled", "queued"}).Draw(g.T, "outcome"), Code: "odd", Epoch: epoch})
	}
	return g.follow(t, s, epoch)
}

// call aims at any call in any way, mostly one that does not fit.
func (g gen) call(t run.Target, s run.State, epoch int64) event.Command {
	name := fmt.Sprintf("c%d-%d", g.one("step", 4)+1, g.one("call", 2))
	if g.one("command", 2) == 0 {
		return run.CallTool{Target: t, Epoch: epoch, Call: name, Again: g.one("again", 2) == 0}
	}
	outcome := rapid.SampledFrom([]string{"ok", "error", "timeout", "cancelled", "in_doubt", "fine"}).Draw(g.T, "outcome")
	returned := run.ReturnTool{Target: t, Epoch: epoch, Call: name, Outcome: outcome, Output: g.text("output"), DurationUS: int64(g.one("duration", 9))}
	if g.one("exit", 2) == 0 {
		code := g.one("code", 3)
		returned.ExitCode, returned.OutputBytes, returned.Truncated = &code, int64(g.one("bytes", 9)), g.one("truncated", 2) == 0
	}
	return returned
}

// follow does what Next says.
func (g gen) follow(t run.Target, s run.State, epoch int64) event.Command {
	if next := run.Next(s); next.Kind == run.CallModel {
		answer := run.RecordAnswer{Target: t, Epoch: epoch, Step: int64(len(s.Steps) + 1), Model: "demo", Text: g.text("answer"), Finish: "stop", Usage: g.usage()}
		for i := range g.one("calls", 3) {
			tool := rapid.SampledFrom([]string{agent.Shell, agent.Read, "rocket"}).Draw(g.T, "tool")
			answer.Calls = append(answer.Calls, run.CallWish{ID: fmt.Sprintf("c%d-%d", answer.Step, i), Tool: tool, Arguments: "{}"})
		}
		return answer
	}
	return obey(t, s, epoch)
}

func (g gen) text(label string) string {
	return rapid.SampledFrom([]string{"", "t", "ü 漢字 🙂", "<b>&\n```go\nx\n```"}).Draw(g.T, label)
}

// usage is unknown now and then, which is another thing than none.
func (g gen) usage() run.Usage {
	var known [2]*int64
	for i := range known {
		if n := int64(g.one("tokens", 4)); n < 3 {
			known[i] = &n
		}
	}
	return run.Usage{InputTokens: known[0], OutputTokens: known[1]}
}

func endTurn(t run.Target, end run.Ending) event.Command {
	if !t.Task.IsZero() {
		return task.EndRun{Task: t.Task, Space: t.Space, Run: t.Run, End: end}
	}
	return conversation.EndTurn{Conversation: t.Conversation, Space: t.Space, Run: t.Run, End: end}
}
