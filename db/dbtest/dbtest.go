// Package dbtest gives each test a migrated database of its own on a real PostgreSQL.
//
// The server is the one of TEST_DATABASE_URL, else a private cluster of this machine. A template is migrated
// once per state of the migrations; each test gets a copy, which is dropped when the test ends.
//
// The end of each test folds its log again and compares every row of the projections.
//
// It may import db, its sub-packages and testing. Only tests import it.
package dbtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/embedded/testcluster"
	"cairn/migrations"
)

// Roles of the two kinds of process.
const (
	Server = "cairn_server"
	Worker = "cairn_worker"
)

// Scratch is an empty schema of projections in every test's database, for its last replay: making one takes
// longer than the rest of a small replay.
const Scratch = "replay_scratch"

// Database is one test's database with the keys and blobs that belong to it.
type Database struct {
	Name  string
	Keys  *db.Keyring
	Blobs *db.BlobStore
	// KeyDir and BlobDir are the folders behind them.
	KeyDir, BlobDir string

	admin      *url.URL
	skipReplay string
}

// shared is joined once per test binary and left when the binary ends.
var shared = sync.OnceValues(func() (*testcluster.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return testcluster.Open(ctx)
})

// New copies the template.
func New(t testing.TB) *Database {
	t.Helper()
	cluster, err := shared()
	if err != nil {
		t.Fatalf("no PostgreSQL for tests: %v", err)
	}
	return NewIn(t, cluster)
}

// NewIn is New in a cluster of the test's choice, for tests that need a certain version or its programs.
func NewIn(t testing.TB, cluster *testcluster.Cluster) *Database {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	parsed, err := url.Parse(cluster.URL("postgres"))
	if err != nil {
		t.Fatalf("test database URL: %v", err)
	}
	template, err := ensureTemplate(ctx, parsed)
	if err != nil {
		t.Fatalf("test template: %v", err)
	}
	d := &Database{Name: "cairn_test_" + random(), admin: parsed, KeyDir: t.TempDir(), BlobDir: t.TempDir()}
	if err := d.exec(ctx, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY FILE_COPY", d.Name, template)); err != nil {
		t.Fatalf("test database: %v", err)
	}
	t.Cleanup(func() { d.drop(t) })
	d.openKeys(t)
	t.Cleanup(func() { d.verifyReplay(t) })
	return d
}

// SkipReplay leaves out the replay that ends every test, for one that breaks the projections on purpose.
func (d *Database) SkipReplay(reason string) {
	if reason == "" {
		panic("dbtest: SkipReplay without a reason")
	}
	d.skipReplay = reason
}

// verifyReplay folds the test's log once more: its projections must be equal, row by row. It runs after the
// connections of Open are closed.
func (d *Database) verifyReplay(t testing.TB) {
	t.Helper()
	if d.skipReplay != "" {
		t.Logf("replay left out: %s", d.skipReplay)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	_, err := audit.VerifyReplay(ctx, audit.ReplayOptions{URL: d.URL(""), Keys: d.Keys, Blobs: d.Blobs, Scratch: Scratch})
	if err != nil {
		t.Errorf("replay: %v", err)
	}
}

func (d *Database) openKeys(t testing.TB) {
	t.Helper()
	if err := os.Chmod(d.KeyDir, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.Keys, err = db.LoadKeyring(d.KeyDir, true); err != nil {
		t.Fatal(err)
	}
	if d.Blobs, err = db.OpenBlobStore(d.BlobDir); err != nil {
		t.Fatal(err)
	}
}

// URL is the address of the database for a role; the empty role is the owner.
func (d *Database) URL(role string) string { return address(d.admin, d.Name, role) }

// Open opens the database as a role, with changes to the options, and closes it when the test ends.
func (d *Database) Open(t testing.TB, role string, change ...func(*db.Options)) *db.DB {
	t.Helper()
	o := db.Options{URL: d.URL(role), Name: t.Name(), Keys: d.Keys, Blobs: d.Blobs}
	for _, c := range change {
		c(&o)
	}
	opened, err := db.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(opened.Close)
	return opened
}

// Conn opens a plain connection as a role.
func (d *Database) Conn(t testing.TB, role string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.URL(role))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func (d *Database) drop(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := d.exec(ctx, "DROP DATABASE IF EXISTS "+d.Name+" WITH (FORCE)"); err != nil {
		t.Errorf("drop %s: %v", d.Name, err)
	}
}

func (d *Database) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, d.admin.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// ensureTemplate migrates the template of this state of the migrations, once over all processes.
func ensureTemplate(ctx context.Context, admin *url.URL) (string, error) {
	name := "cairn_template_" + fingerprint()
	conn, err := pgx.Connect(ctx, admin.String())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext('cairn test template'))"); err != nil {
		return "", err
	}
	var ready bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)", name).Scan(&ready)
	if err != nil || ready {
		return name, err
	}
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + name, "CREATE DATABASE " + name} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	if _, err := db.Migrate(ctx, address(admin, name, "")); err != nil {
		return "", err
	}
	if err := db.MigrateView(ctx, address(admin, name, ""), Scratch); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+name+" IS_TEMPLATE true")
	return name, err
}

// fingerprint names the state of the migrations, and what else the template has.
func fingerprint() string {
	sum := sha256.New()
	fmt.Fprintln(sum, Scratch)
	for _, files := range []fs.FS{migrations.Log, migrations.View} {
		fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(files, path)
			fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
			return err
		})
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

func address(admin *url.URL, name, role string) string {
	u := *admin
	u.Path = "/" + name
	if role != "" {
		u.User = url.User(role)
	}
	return u.String()
}

func random() string {
	var b [6]byte
	rand.Read(b[:])
	return strings.ToLower(hex.EncodeToString(b[:]))
}
