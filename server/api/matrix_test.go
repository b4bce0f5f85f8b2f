package api_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"cairn/domain/event"
	"cairn/domain/space"
)

// matrix says what everyone gets from every route. A route that is not here fails the test, and so does a line
// without a route.
const matrix = `
operation             anonymous stranger member auditor admin owner expired revoked erased
agent-create          401       404      201    403     201   201   401     401     401
agent-get             401       404      200    200     200   200   401     401     401
agent-list            401       404      200    200     200   200   401     401     401
agent-revise          401       404      200    403     200   200   401     401     401
agent-revision-list   401       404      200    200     200   200   401     401     401
conversation-get      401       404      200    200     200   200   401     401     401
conversation-list     401       404      200    200     200   200   401     401     401
conversation-open     401       404      201    403     201   201   401     401     401
event-list            401       404      200    200     200   200   401     401     401
file-content          401       404      200    200     200   200   401     401     401
file-get              401       404      200    200     200   200   401     401     401
file-list             401       404      200    200     200   200   401     401     401
file-remove           401       404      204    403     204   204   401     401     401
file-upload           401       404      201    403     201   201   401     401     401
login                 200       200      200    200     200   200   200     200     200
logout                401       204      204    204     204   204   401     401     401
me                    401       200      200    200     200   200   401     401     401
me-password           401       204      204    204     204   204   401     401     401
me-session-list       401       200      200    200     200   200   401     401     401
me-session-revoke     401       204      204    204     204   204   401     401     401
membership-add        401       404      403    403     201   201   401     401     401
membership-change     401       404      403    403     200   200   401     401     401
membership-list       401       404      200    200     200   200   401     401     401
membership-remove     401       404      403    403     204   204   401     401     401
message-list          401       404      200    200     200   200   401     401     401
message-post          401       404      202    403     202   202   401     401     401
model-list            401       200      200    200     200   200   401     401     401
run-boundary          401       404      200    200     200   200   401     401     401
run-cancel            401       404      200    403     200   200   401     401     401
run-change-diff       401       404      404    404     404   404   401     401     401
run-change-list       401       404      200    200     200   200   401     401     401
run-event-list        401       404      200    200     200   200   401     401     401
run-get               401       404      200    200     200   200   401     401     401
run-retry             401       404      202    403     202   202   401     401     401
source-list           401       404      200    200     200   200   401     401     401
space-create          401       201      201    201     201   201   401     401     401
space-list            401       200      200    200     200   200   401     401     401
task-cancel           401       404      200    403     200   200   401     401     401
task-get              401       404      200    200     200   200   401     401     401
task-list             401       404      200    200     200   200   401     401     401
task-open             401       404      202    403     202   202   401     401     401
task-run-list         401       404      200    200     200   200   401     401     401
task-run-start        401       404      202    403     202   202   401     401     401
`

// TestAuthorisation sends every route of the document as everyone. What is refused leaves nothing in the log.
func TestAuthorisation(t *testing.T) {
	w := newWorld(t, open)
	cast := newCast(t, w)
	lines := strings.Split(strings.TrimSpace(matrix), "\n")
	who := strings.Fields(lines[0])[1:]
	rows := map[string][]string{}
	for _, line := range lines[1:] {
		fields := strings.Fields(line)
		rows[fields[0]] = fields[1:]
	}
	for _, op := range w.operations(t) {
		row, known := rows[op.OperationID]
		delete(rows, op.OperationID)
		if !known || len(row) != len(who) {
			t.Errorf("%s %s (%s) is not in the matrix: say who may", op.Method, op.Path, op.OperationID)
			continue
		}
		for i, role := range who {
			want, _ := strconv.Atoi(row[i])
			at := w.target(t, op, cast.accounts[role])
			before := w.events(t)
			got := op.do(cast.caller(t, role), at)
			if got.status != want {
				t.Errorf("%s as %s answered %d, want %d: %.300s", op.OperationID, role, got.status, want, got.body)
			}
			if _, ok := op.Responses[strconv.Itoa(got.status)]; !ok {
				t.Errorf("%s answered %d, which the document does not list", op.OperationID, got.status)
			}
			if want >= 400 {
				got.problem(got.status, "")
				if after := w.events(t); after != before {
					t.Errorf("%s as %s was refused and left %d events", op.OperationID, role, after-before)
				}
			}
		}
	}
	for left := range rows {
		t.Errorf("the matrix has %s, the document does not", left)
	}
}

// cast is everyone of the matrix.
type cast struct {
	w        *world
	accounts map[string]event.ID
}

func newCast(t *testing.T, w *world) *cast {
	t.Helper()
	c := &cast{w: w, accounts: map[string]event.ID{"owner": w.team.Account, "expired": w.team.Account, "revoked": w.team.Account}}
	for _, role := range []space.Role{space.Member, space.Auditor, space.Admin} {
		c.accounts[string(role)] = w.joined(t, role)
	}
	c.accounts["stranger"] = w.opened(t)
	c.accounts["erased"] = w.joined(t, space.Admin)
	w.erase(t, c.accounts["erased"])
	return c
}

// caller is one of them with a session of their own.
func (c *cast) caller(t *testing.T, role string) *person {
	t.Helper()
	if role == "anonymous" {
		return c.w.stranger(t)
	}
	life := time.Hour
	if role == "expired" {
		life = -time.Second
	}
	p, s := c.w.session(t, c.accounts[role], life)
	if role == "revoked" {
		if was, err := c.w.db.ForgetSession(t.Context(), s.Account, s.ID); err != nil || !was {
			t.Fatalf("revoke: %v %v", was, err)
		}
	}
	return p
}

// TestStrangersLearnNothing compares what a stranger hears about a thing that exists with what is said about one
// that does not.
func TestStrangersLearnNothing(t *testing.T) {
	w := newWorld(t, open)
	cast := newCast(t, w)
	for _, op := range w.operations(t) {
		if !strings.Contains(op.Path, "{") || op.OperationID == "me-session-revoke" {
			continue
		}
		there := w.target(t, op, w.team.Account)
		nowhere := there
		for _, id := range []*event.ID{&nowhere.space, &nowhere.agent, &nowhere.conversation, &nowhere.task, &nowhere.run, &nowhere.file} {
			id[15] ^= 1
		}
		p := cast.caller(t, "stranger")
		a, b := op.do(p, there), op.do(p, nowhere)
		plain := func(h *heard, at target) string {
			text := strings.ReplaceAll(string(h.body), h.header.Get("X-Request-Id"), "")
			for _, id := range []event.ID{at.space, at.agent, at.conversation, at.task, at.run, at.file} {
				text = strings.ReplaceAll(text, id.String(), "ID")
			}
			return text
		}
		if a.status != b.status || plain(a, there) != plain(b, nowhere) {
			t.Errorf("%s tells a stranger what exists:\n%s\n%s", op.OperationID, a.body, b.body)
		}
	}
}

// TestRemovedMembersLoseTheirRights is about the very next request.
func TestRemovedMembersLoseTheirRights(t *testing.T) {
	w := newWorld(t, open)
	account := w.joined(t, space.Admin)
	p, _ := w.session(t, account, time.Hour)
	at := "/spaces/" + w.team.Space.String()
	p.do("GET", at+"/events", nil).want(200)
	owner, _ := w.session(t, w.team.Account, time.Hour)
	owner.do("PATCH", at+"/memberships/"+account.String(), map[string]any{"role": "auditor"}).want(200)
	p.do("POST", at+"/agents", map[string]any{"name": "x", "model": "demo"}).problem(403, "role_too_low")
	owner.do("DELETE", at+"/memberships/"+account.String(), nil).want(204)
	p.do("GET", at+"/events", nil).problem(404, "space_not_found")
	owner.do("DELETE", at+"/memberships/"+w.team.Account.String(), nil).problem(409, "last_owner")
}
