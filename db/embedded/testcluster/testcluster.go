// Package testcluster gives tests a PostgreSQL to make databases in: the one of
// TEST_DATABASE_URL, or a private cluster that all test packages of a user share.
// It may import the standard library, pgx and db/embedded, and is imported by tests only.
//
//	TEST_DATABASE_URL given --> that one, or an error; never another
//	not given               --> /var/tmp/cairn-test-UID-MAJOR: initialised and started on
//	                            demand, fsync off, left running for the next package
//	Stop                    --> stopped, unless a test still uses it
//
// Nothing watches the shared cluster when it is idle: an end of the last test
// process is not a reason to stop, or each package would start it again. So the
// end of `make test` runs `go run ./db/embedded/testcluster/stop`; one left behind idles at about 30 MB and is joined by the next run.
//
// With fsync and synchronous_commit off, a kill -9 of the server itself loses the
// commits of its last moments. Tests of that open a cluster of their own with Fsync.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"cairn/db/embedded"
)

// Cluster is a PostgreSQL for tests.
type Cluster struct {
	private *embedded.Cluster // nil when external
	given   *url.URL
	major   int
}

// Open joins the cluster for tests, starting it when needed. Errors: those of
// embedded.Find and embedded.Open; and whatever TEST_DATABASE_URL answers.
func Open(ctx context.Context) (*Cluster, error) {
	if given := os.Getenv("TEST_DATABASE_URL"); given != "" {
		return external(ctx, given)
	}
	bin, err := embedded.Find(ctx, embedded.FindOptions{})
	if err != nil {
		return nil, err
	}
	return OpenWith(ctx, bin)
}

// OpenWith joins the private cluster of the binaries' major version, for runs on
// a certain one (embedded.FetchNPM gives 18).
func OpenWith(ctx context.Context, bin embedded.Binaries) (*Cluster, error) {
	dir := place(bin.Major)
	if err := private(dir); err != nil {
		return nil, err
	}
	c, err := embedded.Open(ctx, embedded.Options{Dir: dir, Binaries: bin, Disposable: true})
	if err != nil {
		return nil, err
	}
	return &Cluster{private: c, major: c.Version()}, nil
}

func place(major int) string {
	return fmt.Sprintf("/var/tmp/cairn-test-%d-%d", os.Geteuid(), major)
}

// private refuses a folder that another user made at the well-known place first.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("test cluster: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("test cluster: %s is not a folder of uid %d that nobody else may write (%s); fix: remove it, or set TEST_DATABASE_URL",
			dir, os.Geteuid(), info.Mode())
	}
	return nil
}

func external(ctx context.Context, given string) (*Cluster, error) {
	u, err := url.Parse(given)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return nil, errors.New("TEST_DATABASE_URL is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE; fix: correct or unset it")
	}
	conn, err := pgconn.Connect(ctx, given)
	if err != nil {
		return nil, fmt.Errorf("TEST_DATABASE_URL (%s) does not answer: %w; fix: start that server, or unset it to use a private cluster", u.Redacted(), err)
	}
	defer conn.Close(ctx)
	var major int
	if _, err := fmt.Sscanf(conn.ParameterStatus("server_version"), "%d", &major); err != nil {
		return nil, fmt.Errorf("TEST_DATABASE_URL (%s): version: %w", u.Redacted(), err)
	}
	return &Cluster{given: u, major: major}, nil
}

// URL leads to database db as the role that may make databases and roles. To
// test what another role may do, SET SESSION AUTHORIZATION to it.
func (c *Cluster) URL(db string) string {
	if c.private != nil {
		return c.private.URL(db, c.private.Superuser())
	}
	u := *c.given
	u.Path, u.RawPath = "/"+db, ""
	return u.String()
}

// Private tells whether the server is ours: on one of TEST_DATABASE_URL, tests
// must not count on fsync off or on being alone.
func (c *Cluster) Private() bool { return c.private != nil }

// Version is the server's major version.
func (c *Cluster) Version() int { return c.major }

// Stop stops the shared clusters of all versions at the end of a test run.
// One that a process still uses is left running, and named in the error.
func Stop(ctx context.Context) error {
	dirs, err := places()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if perr := private(dir); perr != nil {
			err = errors.Join(err, perr)
			continue
		}
		stopped, serr := embedded.Stop(ctx, dir)
		if serr == nil && !stopped {
			serr = fmt.Errorf("the test cluster in %s is still used by another process; it was left running", dir)
		}
		err = errors.Join(err, serr)
	}
	return err
}

// places lists the clusters that there are, one a major version, and nothing else that tests keep beside them.
func places() ([]string, error) {
	return filepath.Glob(strings.TrimSuffix(place(0), "0") + "[0-9]*")
}
