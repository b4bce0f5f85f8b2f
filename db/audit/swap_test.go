package audit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
	"cairn/domain/account"
	"cairn/domain/event"
)

// heldAppend begins an append that passes the gate and then waits inside its transaction, since another one
// holds a row that its projection inserts. release lets it commit and answers its outcome.
func heldAppend(t *testing.T, base *dbtest.Database, d *db.DB) (id event.ID, release func() error) {
	t.Helper()
	id = dbtest.NewID()
	blocker, err := base.Conn(t, "").Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blocker.Exec(t.Context(), "INSERT INTO view.account (id, account_kind, opened_at, version) VALUES ($1, 'person', now(), 1)", id); err != nil {
		t.Fatal(err)
	}
	outcome := make(chan error, 1)
	go func() {
		email := id.String() + "@example.test"
		_, err := d.Execute(context.Background(), account.Open{Account: id, AccountKind: account.Person, Email: email, DisplayName: "Held", EmailMAC: d.Keys().ClaimMAC("email", email)}, dbtest.Meta(event.System))
		outcome <- err
	}()
	watch := base.Conn(t, "")
	for waiting := false; !waiting; time.Sleep(10 * time.Millisecond) {
		err := watch.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'transactionid')").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	return id, func() error {
		return errors.Join(blocker.Rollback(context.Background()), <-outcome)
	}
}

func accountExists(t *testing.T, base *dbtest.Database, id event.ID) bool {
	t.Helper()
	var exists bool
	if err := base.Conn(t, "").QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM view.account WHERE id = $1)", id).Scan(&exists); err != nil {
		t.Fatal(err)
	}
	return exists
}

// TestSwapUnderLoadLosesNothing swaps beneath 8 writers whose pools have their statements prepared, while an
// append that began before is held open for longer than the swap waits for the gate at a time.
func TestSwapUnderLoadLosesNothing(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team, conversationID := busyTeam(t, d, plainly)
	reads := func() {
		if c, err := d.Read().ConversationByID(t.Context(), conversationID); err != nil || c.SpaceID != team.Space {
			t.Errorf("read: %v", err)
		}
	}
	reads()
	stop := writers(t, base, 8)
	rebuilt, err := audit.Rebuild(t.Context(), options(base), 0)
	if err != nil {
		t.Fatal(err)
	}
	held, release := heldAppend(t, base, d)
	var wg sync.WaitGroup
	wg.Go(func() {
		time.Sleep(3 * time.Second)
		if err := release(); err != nil {
			t.Errorf("held append: %v", err)
		}
	})
	report, err := rebuilt.Swap(t.Context(), audit.SwapOptions{RequireEqual: true})
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", report)
	if report.Tries < 2 {
		t.Errorf("the swap did not wait for the append that was held open")
	}
	if err := rebuilt.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(500 * time.Millisecond) // writers go on in the new tables
	if wrote := stop(); wrote == 0 {
		t.Error("nothing was written")
	}
	reads()
	if !accountExists(t, base, held) {
		t.Error("the row of the held append is lost")
	}
	requireSchemas(t, base, report.Old)
	requireRowsOfWorker(t, base)
	if _, err := audit.VerifyReplay(t.Context(), options(base)); err != nil {
		t.Error(err)
	}
	dropped, err := audit.DropOld(t.Context(), base.URL(""))
	if err != nil || len(dropped) != 1 {
		t.Errorf("dropped %v: %v", dropped, err)
	}
	requireSchemas(t, base)
}

// requireRowsOfWorker checks that the grants of the live tables hold for the new ones.
func requireRowsOfWorker(t *testing.T, base *dbtest.Database) {
	t.Helper()
	conn := base.Conn(t, dbtest.Worker)
	if _, err := conn.Exec(t.Context(), "UPDATE view.run SET version = version WHERE false; SELECT FROM view.message"); err != nil {
		t.Errorf("as the worker: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "DELETE FROM view.cairn_view_version"); err == nil {
		t.Error("the worker may change the schema's version")
	}
}

// TestSwapWithoutTheGateLosesAnAppend shows what the gate is for.
func TestSwapWithoutTheGateLosesAnAppend(t *testing.T) {
	base := dbtest.New(t)
	base.SkipReplay("the test loses a row on purpose")
	d := base.Open(t, dbtest.Server)
	busyTeam(t, d, plainly)
	rebuilt, err := audit.Rebuild(t.Context(), options(base), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer rebuilt.Close()
	held, release := heldAppend(t, base, d)
	if _, err := rebuilt.Swap(t.Context(), audit.Ungated(audit.SwapOptions{})); err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if accountExists(t, base, held) {
		t.Fatal("the row is there: the test does not show what the gate is for")
	}
	_, err = audit.VerifyReplay(t.Context(), options(base))
	requireDifferent(t, err, "account", "account.opened", "")
}

// TestSwapMendsDamagedRows: without RequireEqual the fold of the log wins; with it the swap is refused.
func TestSwapMendsDamagedRows(t *testing.T) {
	base := dbtest.New(t)
	busyTeam(t, base.Open(t, dbtest.Server), plainly)
	if _, err := base.Conn(t, "").Exec(t.Context(), "UPDATE view.message SET text = 'damaged'", pgx.QueryExecModeExec); err != nil {
		t.Fatal(err)
	}
	rebuilt, err := audit.Rebuild(t.Context(), options(base), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer rebuilt.Close()
	_, err = rebuilt.Swap(t.Context(), audit.SwapOptions{RequireEqual: true})
	if different, ok := errors.AsType[*audit.Different](err); !ok || different.Table != "message" {
		t.Fatalf("a swap of equals over damaged rows: %v", err)
	}
	if _, err := rebuilt.Swap(t.Context(), audit.SwapOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rebuilt.Swap(t.Context(), audit.SwapOptions{}); err == nil {
		t.Error("swapped twice")
	}
}

// TestSwapAfterAnErasure rebuilds text that is erased before the swap: the erasure reaches the new tables as
// well, and the old ones go.
func TestSwapAfterAnErasure(t *testing.T) {
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team, _ := busyTeam(t, d, plainly)
	rebuilt, err := audit.Rebuild(t.Context(), options(base), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer rebuilt.Close()
	eraseSpace(t, d, team)
	if _, err := rebuilt.Swap(t.Context(), audit.SwapOptions{RequireEqual: true}); err != nil {
		t.Fatal(err)
	}
	var left int
	err = base.Conn(t, "").QueryRow(t.Context(), "SELECT count(*) FROM view.message WHERE text IS NOT NULL").Scan(&left)
	if err != nil || left > 0 {
		t.Errorf("%d messages have text: %v", left, err)
	}
	if _, err := audit.DropOld(t.Context(), base.URL("")); err != nil {
		t.Error(err)
	}
}
