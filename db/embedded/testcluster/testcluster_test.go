package testcluster

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Other packages may use the shared cluster at the same time, so no test here stops it by force.
func TestSharedClusterIsJoined(t *testing.T) {
	t.Setenv("TEST_DATABASE_URL", "")
	a, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a.URL("postgres") != b.URL("postgres") || !a.Private() || a.Version() < 15 {
		t.Errorf("%s and %s", a.URL("postgres"), b.URL("postgres"))
	}
	answer(t, a.URL("postgres"))
	if err := Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "still used") {
		t.Errorf("Stop under a user: %v", err)
	}
	answer(t, b.URL("postgres"))

	t.Setenv("TEST_DATABASE_URL", a.URL("postgres"))
	given, err := Open(t.Context())
	if err != nil || given.Private() || given.Version() != a.Version() {
		t.Fatalf("%+v %v", given, err)
	}
	answer(t, given.URL("template1"))
}

func answer(t *testing.T, url string) {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestGivenURLNeverFallsThrough(t *testing.T) {
	for _, given := range []string{"postgres://x:secret@127.0.0.1:1/none", "host=/tmp"} {
		t.Setenv("TEST_DATABASE_URL", given)
		_, err := Open(t.Context())
		if err == nil || !strings.Contains(err.Error(), "TEST_DATABASE_URL") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", given, err)
		}
	}
}

func TestPlaceOfAnotherUserIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := private(dir); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := private(dir); err == nil {
		t.Error("a folder that anybody may write was taken")
	}
}
