package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/space"
	"cairn/domain/task"
	"cairn/server/auth"
)

// operation is a route as the document describes it.
type operation struct {
	OperationID string `json:"operationId"`
	Method      string `json:"-"`
	Path        string `json:"-"`
	Parameters  []parameter
	RequestBody *struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]json.RawMessage
	document  *document
}

// parameter is one in the path, the query or a header.
type parameter struct {
	Name, In string
	Schema   schema
}

// document is as much of OpenAPI 3.1 as the tests need, and schema of JSON Schema.
type document struct {
	OpenAPI    string `json:"openapi"`
	Paths      map[string]map[string]*operation
	Components struct{ Schemas map[string]schema }
}

type schema struct {
	Ref        string `json:"$ref"`
	Type       any
	Format     string
	Properties map[string]schema
	Required   []string
	Enum       []any
	MaxLength  *int
	Minimum    *float64
	Maximum    *float64
}

// resolved follows a reference.
func (d *document) resolved(s schema) schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.Components.Schemas[name]
	}
	return s
}

// is reports whether the schema allows a type.
func (s schema) is(kind string) bool {
	if all, ok := s.Type.([]any); ok {
		return slices.Contains(all, any(kind))
	}
	return s.Type == kind
}

// operations reads every route from the document that the server publishes.
func (w *world) operations(t *testing.T) []*operation {
	t.Helper()
	d := into[document](w.stranger(t).do("GET", "//root/openapi.json", nil).want(http.StatusOK))
	var all []*operation
	for path, methods := range d.Paths {
		for method, op := range methods {
			op.Method, op.Path, op.document = strings.ToUpper(method), path, &d
			all = append(all, op)
		}
	}
	slices.SortFunc(all, func(a, b *operation) int { return strings.Compare(a.OperationID, b.OperationID) })
	return all
}

// session makes a session without the cost of a login. A life that is over makes an expired one.
func (w *world) session(t *testing.T, account event.ID, life time.Duration) (*person, db.Session) {
	t.Helper()
	token := dbtest.NewID().String()
	hash := sha256.Sum256([]byte(token))
	s := db.Session{ID: dbtest.NewID(), Account: account, Hash: hash[:], Method: "code"}
	if err := w.db.AddSession(t.Context(), s, life, 1000); err != nil {
		t.Fatal(err)
	}
	return &person{t: t, w: w, account: account, cookie: "cairn_session=" + token}, s
}

// target is what a request of a route needs: fresh things in the team's space, so that no request sees what
// another one did.
type target struct {
	space, agent, conversation, task, run, member, session, file event.ID
	slug, email, code                                            string
}

func (w *world) target(t *testing.T, op *operation, caller event.ID) target {
	t.Helper()
	at := target{space: w.team.Space, agent: w.team.Agent, slug: "s" + dbtest.NewID().String()}
	at.conversation = w.team.Converse(t, w.db)
	at.run = w.team.Post(t, w.db, at.conversation, "$ true").Run
	opened := w.team.Assign(t, w.db, "$ true")
	at.task = opened.Task
	switch op.OperationID {
	case "run-retry":
		dbtest.Must(t, w.db, w.team.Actor(), conversation.CancelRun{Conversation: at.conversation, Space: w.team.Space, Run: at.run})
	case "task-run-start":
		dbtest.Must(t, w.db, w.team.Actor(), task.CancelRun{Task: at.task, Space: w.team.Space, Run: opened.Run})
	case "file-get", "file-content", "file-remove":
		at.file = w.stored(t, form{{dbtest.NewID().String() + ".txt", "text"}})[0]
	case "membership-add":
		at.member = dbtest.NewTeam(t, w.db, "demo").Account
	case "membership-change", "membership-remove":
		at.member = dbtest.NewTeam(t, w.db, "demo").Account
		dbtest.Must(t, w.db, w.team.Actor(), space.AddMember{Space: w.team.Space, Account: at.member, Role: space.Member})
	case "me-session-revoke":
		_, s := w.session(t, caller, time.Hour)
		at.session = s.ID
	case "login":
		id := dbtest.NewTeam(t, w.db, "demo").Account
		code, err := auth.NewCode(context.Background(), w.db, id)
		if err != nil {
			t.Fatal(err)
		}
		at.email, at.code = email(id), code
	}
	return at
}

// path is the route's path with the target's ids.
func (at target) path(op *operation) string {
	return strings.TrimPrefix(strings.NewReplacer("{space}", at.space.String(), "{agent}", at.agent.String(), "{conversation}", at.conversation.String(),
		"{run}", at.run.String(), "{task}", at.task.String(), "{file}", at.file.String(), "{account}", at.member.String(), "{session}", at.session.String()).Replace(op.Path), "/api/v1")
}

// body is a good one. A route with a body that is not here fails its tests.
func (at target) body(t *testing.T, op *operation) map[string]any {
	t.Helper()
	if op.RequestBody == nil {
		return nil
	}
	bodies := map[string]map[string]any{
		"login":             {"email": at.email, "code": at.code},
		"me-password":       {"password": "a long enough secret"},
		"space-create":      {"name": "A space", "slug": at.slug},
		"membership-add":    {"account_id": at.member, "role": "member"},
		"membership-change": {"role": "auditor"},
		"agent-create": {
			"name": "An agent", "model": "demo", "instructions": "Do it.", "tools": []string{"read"},
			"limits": map[string]any{"wall_seconds": 60, "model_calls": 3, "tool_seconds": 9, "output_bytes": 1000},
		},
		"agent-revise":      {"name": "Renamed", "model": "demo", "instructions": "Do it.", "tools": []string{"read"}, "limits": map[string]any{"model_calls": 3}},
		"conversation-open": {"agent_id": at.agent, "title": "A title", "source": map[string]any{"kind": "none"}},
		"task-open":         {"agent_id": at.agent, "title": "A title", "prompt": "$ true", "model": "demo", "source": map[string]any{"kind": "none"}},
		"task-run-start":    {"mode": "continue", "prompt": "$ true", "model": "demo"},
		"run-retry":         {"model": "demo"},
		"message-post":      {"text": "A text", "model": "demo"},
	}
	body, ok := bodies[op.OperationID]
	if !ok {
		t.Fatalf("no body is known for %s: add one", op.OperationID)
	}
	return body
}

// do sends a good request of the route.
func (op *operation) do(p *person, at target) *heard {
	p.t.Helper()
	path := at.path(op)
	if op.OperationID == "run-change-diff" {
		path += "?path=a"
	}
	return p.do(op.Method, path, goodBody(p.t, op, at))
}
