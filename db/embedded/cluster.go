package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const superuser = "postgres"

// Options of a cluster. Fsync, Settings and Binaries count for the process that
// starts the server; whoever attaches finds it as it is.
type Options struct {
	Dir      string            // the data folder, see DefaultDir; made when missing
	Fsync    bool              // false only for tests: a power cut loses the cluster
	Settings map[string]string // server settings beside or over the ones of this package
	Log      io.Writer         // one line for each step; nil for none

	Binaries   Binaries // zero: Find, in the version of the folder
	Disposable bool     // only for tests: the data is thrown away when a power cut may have torn it (Fsync off)
}

// Cluster is one use of a running cluster. Its methods may be called from many goroutines.
type Cluster struct {
	dir, data, name string
	options         Options
	settings        map[string]string
	account         account
	patience        time.Duration

	socket  string
	port    int
	major   int
	child   int   // pid of a postmaster that this process started, until it is reaped
	logFrom int64 // where this start begins in postgres.log

	closing sync.Mutex
	users   *os.File // cluster.lock, shared; nil once closed
}

// Open makes, starts or joins the cluster of o.Dir and waits until it answers,
// at most 60 s after the start. Any number of processes may open one folder at
// once, in any order with others that close it.
//
// Errors beside those of Find: *Foreign, *WrongVersion, *WrongOwner, *Unreachable,
// *DiskFull, *StartFailed, *NotDurable. After an error nothing runs that was not running before.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	s, err := settings(o)
	if err != nil {
		return nil, err
	}
	dir, err := Claim(o.Dir)
	if err != nil {
		return nil, err
	}
	start, err := lockFile(ctx, filepath.Join(dir, startLock), unix.LOCK_EX)
	if err != nil {
		return nil, full(dir, "locking", err)
	}
	defer start.Close() // nothing was written through it
	c := &Cluster{dir: dir, data: filepath.Join(dir, dataName), name: nameFor(dir), options: o, settings: s, patience: stopTimeout}
	if err := c.join(ctx); err != nil {
		return nil, err
	}
	if err := c.ensure(ctx); err != nil {
		_, rerr := c.release()
		return nil, errors.Join(err, rerr)
	}
	return c, nil
}

// join registers this use. Nobody holds the lock exclusively except under start.lock, so it never waits.
func (c *Cluster) join(ctx context.Context) (err error) {
	if c.account, err = accountFor(c.data); err != nil {
		return err
	}
	if uid, _, err := ownerOf(c.data); err == nil && uid != c.account.uid {
		return &WrongOwner{Path: c.data, Owner: uid, Wants: c.account.uid}
	}
	if c.users, err = lockFile(ctx, filepath.Join(c.dir, clusterLock), unix.LOCK_SH); err != nil {
		return full(c.dir, "locking", err)
	}
	return nil
}

// Stop ends a cluster that nobody uses, such as one left behind by a killed
// process; stopped is false when somebody uses it. A folder without a server is a success.
func Stop(ctx context.Context, dir string) (stopped bool, err error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if dir, err = Claim(dir); err != nil {
		return false, err
	}
	start, err := lockFile(ctx, filepath.Join(dir, startLock), unix.LOCK_EX)
	if err != nil {
		return false, err
	}
	defer start.Close() // nothing was written through it
	c := &Cluster{dir: dir, data: filepath.Join(dir, dataName), name: nameFor(dir), patience: stopTimeout}
	if err := c.join(ctx); err != nil {
		return false, err
	}
	if p, ok := readPidFile(c.data); ok {
		c.socket, c.port = p.socket, p.port
	}
	return c.release()
}

// URL is for pgx and libpq, over the unix socket. Any user is trusted there:
// the folder of the socket is closed to all accounts but the server's and root.
func (c *Cluster) URL(db, user string) string {
	q := url.Values{"host": {c.socket}, "port": {fmt.Sprint(c.port)}}
	u := url.URL{
		Scheme: "postgres", User: url.User(user), Path: "/" + db,
		RawQuery: strings.ReplaceAll(q.Encode(), "+", "%20"),
	} // libpq does not read + as a space
	return u.String()
}

// Superuser is the name of the role that may do everything.
func (c *Cluster) Superuser() string { return superuser }

// Dir is the data folder, absolute and without links.
func (c *Cluster) Dir() string { return c.dir }

// Pid is the server's process now, 0 when it does not run (or not where this process can see it).
func (c *Cluster) Pid() int { return c.postmaster() }

// Version is the major version of the running server, 15 or newer.
func (c *Cluster) Version() int { return c.major }

func (c *Cluster) say(format string, args ...any) {
	if c.options.Log != nil {
		fmt.Fprintf(c.options.Log, format+"\n", args...)
	}
}
