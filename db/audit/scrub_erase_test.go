package audit_test

import (
	"testing"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/account"
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
