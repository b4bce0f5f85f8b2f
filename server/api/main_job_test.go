package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"cairn/domain/conversation"
	"cairn/server/api"
)

// TestMainJob does over REST what a person comes for.
func TestMainJob(t *testing.T) {
	w := newWorld(t, open)
	p := w.owner(t)
	me := into[api.Me](p.do("GET", "/me", nil).want(http.StatusOK))
	if me.Account != w.team.Account || me.Email == nil || *me.Email != email(me.Account) || me.HasPassword {
		t.Errorf("me is %+v", me)
	}
	made := into[api.SpaceCreated](p.do("POST", "/spaces", map[string]any{"name": "Research", "slug": "research"}).want(http.StatusCreated))
	at := "/spaces/" + made.Space.String()
	agent := into[api.AgentRevised](p.do("POST", at+"/agents", map[string]any{"name": "Helper", "model": "demo", "limits": map[string]any{"model_calls": 7}}).want(http.StatusCreated))
	revised := into[api.AgentRevised](p.do("PATCH", "/agents/"+agent.Agent.String(), map[string]any{"instructions": "Be short."}).want(http.StatusOK))
	now := into[api.Agent](p.do("GET", "/agents/"+agent.Agent.String(), nil).want(http.StatusOK))
	if revised.Revision != 2 || now.Revision != 2 || *now.Instructions != "Be short." || *now.Name != "Helper" || now.Limits.ModelCalls != 7 || len(now.Tools) != 6 {
		t.Errorf("the agent is %+v", now)
	}
	thread := into[api.ConversationOpened](p.do("POST", at+"/conversations", map[string]any{"agent_id": agent.Agent, "title": "First"}).want(http.StatusCreated))
	posted := into[conversation.Posted](p.do("POST", "/conversations/"+thread.Conversation.String()+"/messages", map[string]any{"text": "$ uname"}).want(http.StatusAccepted))
	run := into[api.Run](p.do("GET", "/runs/"+posted.Run.String(), nil).want(http.StatusOK))
	if run.State != "queued" || run.Conversation == nil || *run.Conversation != thread.Conversation || run.Task != nil || run.Attempt != 1 {
		t.Errorf("the run is %+v", run)
	}
	if b := into[api.Boundary](p.do("GET", "/runs/"+posted.Run.String()+"/boundary", nil).want(http.StatusOK)); string(b.Report) != "null" {
		t.Errorf("the boundary before the sandbox is %s", b.Report)
	}
	shown := into[api.Conversation](p.do("GET", "/conversations/"+thread.Conversation.String(), nil).want(http.StatusOK))
	if shown.ActiveRun == nil || *shown.ActiveRun != posted.Run || shown.Turns != 1 {
		t.Errorf("the conversation is %+v", shown)
	}
	if c := into[api.RunCancelled](p.do("POST", "/runs/"+posted.Run.String()+"/cancel", nil).want(http.StatusOK)); c.State != "cancelled" {
		t.Errorf("cancelled is %+v", c)
	}
	p.do("POST", "/runs/"+posted.Run.String()+"/cancel", nil).problem(http.StatusConflict, "")
	messages := into[api.List[api.Message]](p.do("GET", "/conversations/"+thread.Conversation.String()+"/messages", nil).want(http.StatusOK))
	if len(messages.Items) != 1 || *messages.Items[0].Text != "$ uname" || messages.Items[0].RunState != "cancelled" {
		t.Errorf("messages are %+v", messages)
	}
	if models := into[api.Models](p.do("GET", "/models", nil).want(http.StatusOK)); len(models.Items) != 1 || models.Items[0].Name != "demo" {
		t.Errorf("models are %+v", models)
	}
	followed(t, p, "/runs/"+posted.Run.String()+"/events", "run.queued", "run.cancelled")
	followed(t, p, at+"/events?kinds=agent.revised,run.queued", "agent.revised", "agent.revised", "run.queued")
	p.do("GET", at+"/events?after=1000000", nil).problem(http.StatusConflict, "start_over")
	p.do("GET", at+"/events?kinds=no.such", nil).problem(http.StatusUnprocessableEntity, "unknown_kind")
}

// followed reads events page by page until those that are wanted have come, in their order.
func followed(t *testing.T, p *person, path string, want ...string) {
	t.Helper()
	join := "?"
	if strings.Contains(path, "?") {
		join = "&"
	}
	var got []string
	after := "0"
	for tries := 0; len(got) < len(want) && tries < 500; tries++ {
		page := into[api.Events](p.do("GET", path+join+"limit=1&after="+after, nil).want(http.StatusOK))
		for _, line := range page.Events {
			got = append(got, line.Kind)
		}
		after = strconv.FormatInt(page.NextAfter, 10)
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("%s gave %v, want %v", path, got, want)
		}
	}
}
