package worker_test

import (
	"strings"
	"testing"
	"time"

	"cairn/db/dbtest"
	"cairn/domain/agent"
	"cairn/domain/egress"
	"cairn/domain/run"
	"cairn/domain/space"
	sandboxegress "cairn/sandbox/egress"
	"cairn/worker"
)

// TestEgressIsPinnedBoundedAndRecorded: what an agent may reach comes with its run, inside of what its space and
// the worker allow; what its sandbox asks for outside is in the log before the run ends.
func TestEgressIsPinnedBoundedAndRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work("one", func(o *worker.Options) {
		o.EgressCeiling = sandboxegress.List
		o.Offline = map[string]string{"GOPROXY": "off"}
	})
	id := b.team.Converse(t, b.d)
	revise := func(p *egress.Policy) {
		dbtest.Must(t, b.d, b.team.Actor(), agent.Revise{Agent: b.team.Agent, Space: b.team.Space, DisplayName: "A", Model: "demo", Tools: agent.Tools(), Egress: p})
	}

	first := b.ends(b.post(b.team, id, "$ env | grep -i proxy; echo end"), run.StatusSucceeded, 40*time.Second)
	if out := first.Steps[0].Calls[0].Result.Output.Text(); out != "exit code: 0\nGOPROXY=off\nend\n" {
		t.Errorf("without a policy: %q", out)
	}

	list := &egress.Policy{Tier: egress.List, Rules: []egress.Rule{{Host: "api.example.com", Methods: []string{"GET"}}}}
	revise(list)
	target := b.post(b.team, id, "$ curl -sS https://elsewhere.example.org/x; curl -sS https://elsewhere.example.org/y; echo $GOPROXY end")
	second := b.ends(target, run.StatusSucceeded, 40*time.Second)
	if out := second.Steps[0].Calls[0].Result.Output.Text(); strings.Count(out, "403") != 2 || !strings.HasPrefix(out, "exit code: 0\nend\n") {
		t.Errorf("with a list: %q", out)
	}
	var decided []run.EgressDecided
	var report string
	for _, e := range b.events(target) {
		switch e := e.(type) {
		case run.EgressDecided:
			decided = append(decided, e)
		case run.SandboxPrepared:
			report = string(e.Report)
		}
	}
	if len(decided) == 0 || decided[0].Decisions[0].Target.Text() != "elsewhere.example.org" || decided[0].Decisions[0].Reason != "no_rule" || decided[0].Decisions[0].Allowed {
		t.Errorf("decided %+v", decided)
	}
	if !strings.Contains(report, `"egress":{"tier":"list","rules":[{"host":"api.example.com"`) {
		t.Errorf("report %s", report)
	}
	row, err := b.d.Read().RunByID(t.Context(), target.Run)
	if err != nil || row.EgressRefused == nil || *row.EgressRefused != 2 || row.EgressAllowed == nil || *row.EgressAllowed != 0 {
		t.Errorf("counted %v %v, %v", row.EgressAllowed, row.EgressRefused, err)
	}

	fails := func(want string) {
		t.Helper()
		state := b.ends(b.post(b.team, id, "$ echo no"), run.StatusFailed, 40*time.Second)
		if state.Code != run.CodeSandboxRefused || !strings.Contains(state.Message.Text(), want) {
			t.Errorf("%s: %q, want %q", state.Code, state.Message.Text(), want)
		}
	}
	dbtest.Must(t, b.d, b.team.Actor(), space.BoundEgress{Space: b.team.Space, Egress: &egress.Policy{Tier: egress.Registries}})
	fails("rule for api.example.com [443] GET is not allowed by the space's policy")
	dbtest.Must(t, b.d, b.team.Actor(), space.BoundEgress{Space: b.team.Space})
	revise(&egress.Policy{Tier: egress.Open})
	fails("tier open is not allowed by the ceiling of this worker")
}
