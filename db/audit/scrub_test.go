package audit_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/audit"
	"cairn/db/dbtest"
	"cairn/db/embedded"
	"cairn/domain/account"
	"cairn/domain/agent"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
)

// needles are texts, and keys, that are searched for byte by byte. They do not compress, so that no file
// holds them in another form.
type needles map[string][]byte

func (n needles) say(what string) string { return n.long(what, 48) }

// long makes a text of which a piece in the middle is the needle: long values are cut into chunks.
func (n needles) long(what string, size int) string {
	raw := make([]byte, size)
	rand.Read(raw)
	text := base64.RawURLEncoding.EncodeToString(raw)[:size]
	n[what] = []byte(text[size/2-20 : size/2+20])
	return text
}

func (n needles) in(content []byte) (found []string) {
	for what, needle := range n {
		if bytes.Contains(content, needle) {
			found = append(found, what)
		}
	}
	return found
}

// inFolder answers which needles the files of a folder hold, and where.
func (n needles) inFolder(t *testing.T, dir string) map[string][]string {
	t.Helper()
	places := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !entry.Type().IsRegular() {
			return nil // the server removes files meanwhile
		}
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, what := range n.in(content) {
			name, _ := filepath.Rel(dir, path)
			places[what] = append(places[what], name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return places
}

// cluster is a private, durable PostgreSQL with one deployment in it.
type cluster struct {
	*embedded.Cluster
	dir  string
	bin  embedded.Binaries
	keys *db.Keyring
	blob *db.BlobStore
}

func openCluster(t *testing.T) *cluster {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "cairn-scrub-test-") // reachable for the server's account
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	c := &cluster{dir: filepath.Join(base, "data")}
	if c.bin, err = embedded.Find(t.Context(), embedded.FindOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Cluster, err = embedded.Open(t.Context(), embedded.Options{
		Dir: c.dir, Fsync: true, Binaries: c.bin,
		Settings: map[string]string{"log_error_verbosity": "terse"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := db.Migrate(t.Context(), c.url()); err != nil {
		t.Fatal(err)
	}
	if c.keys, err = db.LoadKeyring(filepath.Join(base, "keys"), true); err != nil {
		t.Fatal(err)
	}
	if c.blob, err = db.OpenBlobStore(filepath.Join(base, "data", "blob")); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) url() string { return c.URL("postgres", c.Superuser()) }

func (c *cluster) open(t *testing.T) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{URL: c.url(), Name: t.Name(), Keys: c.keys, Blobs: c.blob})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func (c *cluster) exec(t *testing.T, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.url())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// dump is what pg_dump writes of the log and the projections, without the vault.
func (c *cluster) dump(t *testing.T) []byte {
	t.Helper()
	if c.bin.PgDump == "" {
		return c.copyAll(t)
	}
	out, err := exec.CommandContext(t.Context(), c.bin.PgDump, "--dbname", c.url(), "--exclude-schema", "vault").Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return out
}

// copyAll stands in for pg_dump where the binaries have none.
func (c *cluster) copyAll(t *testing.T) []byte {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.url())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND n.nspname NOT IN ('vault', 'pg_catalog', 'information_schema')`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, table := range tables {
		if _, err := conn.PgConn().CopyTo(t.Context(), &out, "COPY "+table+" TO STDOUT"); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// secretTeam writes a needle into every sealed field that there is, some of them long, and each of the
// subjects' wrapped keys becomes one.
func secretTeam(t *testing.T, c *cluster, d *db.DB, n needles) dbtest.Team {
	t.Helper()
	team := dbtest.Team{Account: dbtest.NewID(), Space: dbtest.NewID(), Agent: dbtest.NewID()}
	email, slug := n.say("email")+"@example.test", strings.ToLower(strings.NewReplacer("_", "a", "-", "b").Replace(n.say("slug")))
	n["slug"] = []byte(slug)
	dbtest.Must(t, d, event.System, account.Open{Account: team.Account, AccountKind: account.Person, Email: email, DisplayName: n.say("account name"), EmailMAC: d.Keys().ClaimMAC("email", email)})
	dbtest.Must(t, d, event.System, space.Create{Space: team.Space, DisplayName: n.say("space name"), Slug: slug, SlugMAC: d.Keys().ClaimMAC("slug", slug), Owner: team.Account})
	dbtest.Must(t, d, team.Actor(), agent.Revise{Agent: team.Agent, Space: team.Space, DisplayName: n.say("agent name"), Model: "demo", Instructions: n.long("instructions", 3000), Tools: agent.Tools()})
	id := dbtest.NewID()
	dbtest.Must(t, d, team.Actor(), conversation.Open{Conversation: id, Space: team.Space, Agent: team.Agent, Title: n.say("title"), Source: run.Source{Kind: run.SourceNone}})
	meta := dbtest.Meta(team.Actor())
	meta.Key, meta.Request = "request-1", []byte(n.say("request under an idempotency key"))
	first := team.Message(id, n.say("message"))
	if _, err := d.Execute(t.Context(), first, meta); err != nil {
		t.Fatal(err)
	}
	second := team.Message(id, n.long("message in the blob store", 100_000))
	dbtest.Must(t, d, team.Actor(), second)
	carry(t, d, team, id, first.Run, n.say, run.Ending{Outcome: run.StatusSucceeded, Answer: n.long("answer", 50_000)})
	carry(t, d, team, id, second.Run, func(what string) string { return n.say(what + " again") }, run.Ending{Outcome: run.StatusFailed, Code: "broken", Message: n.say("failure")})

	conn, err := pgx.Connect(t.Context(), c.url())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for what, subject := range map[string]event.ID{"key of the account": team.Account, "key of the space": team.Space} {
		var wrapped []byte
		if err := conn.QueryRow(t.Context(), "SELECT wrapped FROM vault.subject_key WHERE subject = $1", subject).Scan(&wrapped); err != nil {
			t.Fatal(err)
		}
		n[what] = wrapped
	}
	return team
}

// TestScrubLeavesNoByte erases and scrubs on a cluster of its own and then searches all its files.
func TestScrubLeavesNoByte(t *testing.T) {
	c, gone, kept := openCluster(t), needles{}, needles{}
	d := c.open(t)
	team := secretTeam(t, c, d, gone)
	secretTeam(t, c, d, kept)
	c.exec(t, "ANALYZE; CHECKPOINT")
	time.Sleep(time.Second) // the planner's statistics and everything else is on disk
	c.exec(t, "CHECKPOINT")
	// Of the first only a MAC is stored; the text of a step is in no projection.
	never := map[string]bool{"request under an idempotency key": true, "step": true, "step again": true}
	before := gone.inFolder(t, c.dir)
	for what := range gone {
		if (len(before[what]) == 0) != never[what] {
			t.Errorf("before the erasure, %s is found in %v", what, before[what])
		}
	}
	if found := gone.in(c.dump(t)); len(found) < 15 {
		t.Errorf("a dump before the erasure has only %v", found)
	}

	eraseSpace(t, d, team)
	eraseAccount(t, d, team.Account)
	if found := gone.in(c.dump(t)); len(found) > 0 {
		t.Errorf("a dump after the erasure has %v", found)
	}
	c.exec(t, "CHECKPOINT")
	if left := gone.inFolder(t, c.dir); len(left) < 15 {
		t.Errorf("without a scrub the files should have most of it, they have %v", left)
	}
	report, err := audit.Scrub(t.Context(), c.url())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range report.Steps {
		t.Logf("%+v", step)
	}
	if !report.Clean() {
		t.Error("not every step was done")
	}
	for what, places := range gone.inFolder(t, c.dir) {
		t.Errorf("%s is still in %v", what, places)
	}
	if found := kept.in(c.dump(t)); len(found) < 15 {
		t.Errorf("of another space a dump has only %v", found)
	}
	if _, err := audit.VerifyReplay(t.Context(), audit.ReplayOptions{URL: c.url(), Keys: c.keys, Blobs: c.blob}); err != nil {
		t.Error(err)
	}
}

// TestScrubSaysWhatItMayNotDo runs it as a role that owns nothing.
func TestScrubSaysWhatItMayNotDo(t *testing.T) {
	base := dbtest.New(t)
	busyTeam(t, base.Open(t, dbtest.Server), plainly)
	report, err := audit.Scrub(t.Context(), base.URL(dbtest.Server))
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, step := range report.Steps {
		t.Logf("%+v", step)
		open[step.Name] = !step.Done && step.Fix != "" && step.Detail != ""
	}
	for _, name := range []string{"old transactions", "row versions", "planner statistics", "write-ahead log"} {
		if !open[name] {
			t.Errorf("%s: the server's role cannot have done it", name)
		}
	}
	if report.Clean() {
		t.Error("called clean")
	}
}
