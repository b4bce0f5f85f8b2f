package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/db/dbtest"
	"cairn/domain/account"
	"cairn/domain/event"
	"cairn/domain/space"
)

// TestDenialsAreEvents tries what is refused, as a stranger, as an auditor and with a wrong password: each is one event
// of the account that was refused, and holds nothing of what was sent.
func TestDenialsAreEvents(t *testing.T) {
	w := newWorld(t)
	at := w.urls[0] + "/api/v1"
	stranger, auditor := dbtest.NewTeam(t, w.db, "demo").Account, dbtest.NewTeam(t, w.db, "demo").Account
	dbtest.Must(t, w.db, w.team.Actor(), space.AddMember{Space: w.team.Space, Account: auditor, Role: space.Auditor})
	strange, _ := w.cookie(t, stranger, time.Hour)
	audit, _ := w.cookie(t, auditor, time.Hour)
	team := w.team.Space.String()
	const secret = "what nobody may read in the log"

	wantStatus(t, 404)(ask(t, "GET", at+"/spaces/"+team+"/events", strange, nil))
	wantStatus(t, 404)(ask(t, "GET", at+"/spaces/"+dbtest.NewID().String()+"/events", strange, nil)) // nothing is there
	wantStatus(t, 404)(ask(t, "GET", at+"/nothing/here", strange, nil))
	wantStatus(t, 401)(ask(t, "GET", at+"/me", "", nil))
	wantStatus(t, 401)(ask(t, "POST", at+"/login", "", map[string]string{"email": stranger.String() + "@example.test", "password": secret}))
	wantStatus(t, 401)(ask(t, "POST", at+"/login", "", map[string]string{"email": "nobody@example.test", "password": secret}))
	wantStatus(t, 403)(ask(t, "POST", at+"/spaces/"+team+"/agents", audit, map[string]any{"name": secret, "model": "demo", "instructions": secret}))
	ws := watch(t, w.urls[1], strange)
	if got := topicAnswer(t, ws, w.team.Agent.String()); got != "not_found" {
		t.Errorf("a stranger's topic answers %s", got)
	}
	w.wantDenials(t, stranger,
		"account/"+stranger.String()+" GET /api/v1/spaces/{space}/events space_not_found "+team,
		"account/"+stranger.String()+" live topic_not_found "+w.team.Agent.String(),
		"system POST /api/v1/login login_refused -")
	w.wantDenials(t, auditor, "account/"+auditor.String()+" POST /api/v1/spaces/{space}/agents role_too_low "+team)
	var leaks int
	if err := w.base.Conn(t, "").QueryRow(t.Context(), "SELECT count(*) FROM log.event WHERE kind LIKE 'account.%' AND data::text LIKE '%' || $1 || '%'", secret).Scan(&leaks); err != nil || leaks > 0 {
		t.Errorf("%d events hold what was sent (%v)", leaks, err)
	}
}

// wantDenials waits until the account's stream has as many refusals as are wanted, and compares them.
func (w *world) wantDenials(t *testing.T, id event.ID, want ...string) {
	t.Helper()
	var got []string
	for begin := time.Now(); len(got) < len(want) && time.Since(begin) < 20*time.Second; time.Sleep(20 * time.Millisecond) {
		got = nil
		records, err := w.db.Stream(t.Context(), id, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			e, err := w.db.Decode(t.Context(), &records[i])
			if err != nil {
				t.Fatal(err)
			}
			if denied, ok := e.(account.ActionDenied); ok {
				target := "-"
				if denied.Target != nil {
					target = denied.Target.String()
				}
				got = append(got, fmt.Sprint(records[i].Actor, " ", denied.Route, " ", denied.Rule, " ", target))
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("refusals:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
