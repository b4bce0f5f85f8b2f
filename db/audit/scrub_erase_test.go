package audit_test

import (
	"testing"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
	"cairn/domain/account"
	"cairn/domain/agent"
	"cairn/domain/catalog"
	"cairn/domain/event"
	"cairn/domain/space"
)

func eraseSpace(t testing.TB, d *db.DB, team dbtest.Team) {
	t.Helper()
	state, _, err := d.Load(t.Context(), space.Stream(team.Space))
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Must(t, d, team.Actor(), space.Erase{Space: team.Space, Claim: state.(space.State).Claim})
}

func eraseAccount(t testing.TB, d *db.DB, id event.ID) {
	t.Helper()
	state, _, err := d.Load(t.Context(), account.Stream(id))
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Must(t, d, event.System, account.Erase{Account: id, Claim: state.(account.State).Claim})
}

// TestErasureHoldsAfterTheVaultIsRestored brings the keys of an erased space and account back, as a restore of
// an older vault does.
func TestErasureHoldsAfterTheVaultIsRestored(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team, _ := busyTeam(t, d, plainly)
	kept, _ := busyTeam(t, d, plainly)
	conn := base.Conn(t, "")
	if _, err := conn.Exec(t.Context(), "CREATE TABLE public.backup AS SELECT * FROM vault.subject_key"); err != nil {
		t.Fatal(err)
	}
	eraseSpace(t, d, team)
	eraseAccount(t, d, team.Account)
	if _, err := conn.Exec(t.Context(), "TRUNCATE vault.subject_key; INSERT INTO vault.subject_key SELECT * FROM public.backup"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{2, 0} {
		if n, err := audit.EnforceErasures(t.Context(), base.URL(dbtest.Server), catalog.Registry()); err != nil || n != want {
			t.Fatalf("destroyed %d keys, want %d: %v", n, want, err)
		}
	}
	fresh := base.Open(t, dbtest.Server)
	agentOf := func(team dbtest.Team) agent.State {
		state, _, err := fresh.Load(t.Context(), agent.Stream(team.Agent, team.Space))
		if err != nil {
			t.Fatal(err)
		}
		return state.(agent.State)
	}
	if !agentOf(team).Name.Erased() || !agentOf(kept).Name.Readable() {
		t.Errorf("erased: %+v, kept: %+v", agentOf(team).Name, agentOf(kept).Name)
	}
}
