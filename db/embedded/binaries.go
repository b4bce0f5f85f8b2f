package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// oldest is the lowest major version that the migrations are tested on.
const oldest = 15

// Binaries is a folder with at least initdb and postgres.
type Binaries struct {
	Dir     string
	Major   int    // 15, 18, ...
	Version string // as postgres --version tells it, "15.18"
	From    string // the step of the search that found it
	// The dump tools, absolute, empty when the folder lacks them: the npm package has neither.
	PgDump, PgRestore string
}

func (b Binaries) path(program string) string { return filepath.Join(b.Dir, program) }

var versionLine = regexp.MustCompile(`PostgreSQL\) (\d+)(\S*)`)

// probe runs the binaries in dir as the account that will run the server.
func probe(a account, dir, from string) (Binaries, error) {
	b := Binaries{Dir: dir, From: from}
	for _, program := range []string{"initdb", "postgres"} {
		if !executable(b.path(program)) {
			return b, fmt.Errorf("%s holds no executable %s", dir, program)
		}
	}
	for _, program := range []string{"initdb", "postgres"} {
		out, err := version(a, b.path(program))
		if err != nil {
			return b, err
		}
		if b.Major, err = strconv.Atoi(out[0]); err != nil {
			return b, fmt.Errorf("%s --version: %w", b.path(program), err)
		}
		b.Version = out[0] + out[1]
	}
	if b.Major < oldest {
		return b, fmt.Errorf("%s is version %s, the oldest supported is %d", dir, b.Version, oldest)
	}
	b.PgDump, b.PgRestore = optional(b.path("pg_dump")), optional(b.path("pg_restore"))
	return b, nil
}

func version(a account, path string) ([]string, error) {
	cmd := a.command("/", path, "--version")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, fs.ErrPermission) {
		if u := a.blocked(filepath.Dir(path)); u != nil {
			return nil, u
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w %s", path, err, strings.TrimSpace(stderr.String()))
	}
	m := versionLine.FindStringSubmatch(string(out))
	if m == nil {
		return nil, fmt.Errorf("%s --version says %q, which is not PostgreSQL", path, strings.TrimSpace(string(out)))
	}
	return m[1:], nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func optional(path string) string {
	if executable(path) {
		return path
	}
	return ""
}
