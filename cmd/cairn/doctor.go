package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"cairn/db"
	"cairn/db/embedded"
	"cairn/sandbox"
)

// check is one line of the doctor's answer.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to do when it is not ok
}

// diagnosis is the whole answer. The grade is that of a real sandbox, null when none could be made.
type diagnosis struct {
	OK     bool           `json:"ok"`
	Grade  *sandbox.Grade `json:"grade"`
	Checks []check        `json:"checks"`
}

func doctorCommand(g *globals) *cobra.Command {
	var asJSON bool
	var required string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and installation; every failed check names its fix",
		Long: "Check what Cairn needs here: the kernel and the sandbox, by preparing a real one; PostgreSQL; the data\n" +
			"folder with its keys and blobs. Nothing is changed. Exit code 8 when a check fails.",
		Example: "  cairn doctor\n  cairn doctor --json | jq '.checks[] | select(.ok | not)'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			grade, err := parseGrade(required)
			if err != nil {
				return err
			}
			d := g.diagnose(cmd.Context(), grade)
			if asJSON || g.output == "json" {
				if err := json.NewEncoder(cmd.OutOrStdout()).Encode(d); err != nil {
					return err
				}
			} else {
				for _, c := range d.Checks {
					fmt.Fprintln(cmd.OutOrStdout(), c.line())
				}
			}
			if !d.OK {
				return unavailable(errors.New("not everything that Cairn needs is here"))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer as JSON")
	c.Flags().StringVar(&required, "require-grade", string(sandbox.GradeC), "lowest `GRADE` of the sandbox that is good enough: C, C-, D or F")
	return c
}

func (c check) line() string {
	if c.OK {
		return fmt.Sprintf("ok    %-22s %s", c.Name, c.Detail)
	}
	return fmt.Sprintf("FAIL  %-22s %s\n      %-22s fix: %s", c.Name, c.Detail, "", c.Fix)
}

func (g *globals) diagnose(ctx context.Context, grade sandbox.Grade) diagnosis {
	d := diagnosis{OK: true}
	add := func(c check) {
		d.OK = d.OK && c.OK
		d.Checks = append(d.Checks, c)
	}
	add(checkKernel())
	report, checks := checkSandbox(ctx, grade)
	for _, c := range checks {
		add(c)
	}
	if report != nil {
		d.Grade = report.Grade
	}
	add(g.checkPostgres(ctx))
	add(g.checkDataFolder())
	add(g.checkKeys())
	add(g.checkDatabase(ctx))
	return d
}

func checkKernel() check {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return check{Name: "kernel", Detail: err.Error(), Fix: "run on Linux"}
	}
	return check{Name: "kernel", OK: true, Detail: unix.ByteSliceToString(u.Release[:]) + " " + runtime.GOARCH}
}

// checkSandbox prepares a real sandbox: the answer of each control is what the worker observed. Everything that
// this machine can do is tried; what the required grade needs must be there.
func checkSandbox(ctx context.Context, required sandbox.Grade) (*sandbox.Report, []check) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "cairn-doctor-")
	if err != nil {
		return nil, []check{{Name: "sandbox", Detail: err.Error(), Fix: "make the temporary folder writable"}}
	}
	defer os.RemoveAll(dir)
	backend := sandbox.NewNative(sandbox.Options{})
	defer backend.Close()
	spec := sandbox.Spec{ID: "doctor-" + filepath.Base(dir), RunDir: filepath.Join(dir, "run"), Grade: required}
	instance, err := backend.Prepare(ctx, spec)
	if refused, ok := errors.AsType[*sandbox.RefusedError](err); ok {
		return refused.Report, append(controls(refused.Report), check{Name: "sandbox", Detail: string(refused.Control) + ": " + refused.Reason, Fix: refused.Fix})
	}
	if err != nil {
		return nil, []check{{Name: "sandbox", Detail: err.Error(), Fix: "see docs/operations/sandbox.md"}}
	}
	report := instance.Report()
	checks := controls(report)
	if err := instance.Close(); err != nil {
		return report, append(checks, check{Name: "sandbox", Detail: err.Error(), Fix: "remove what is left under " + dir})
	}
	return report, append(checks, check{Name: "sandbox", OK: true, Detail: fmt.Sprintf("%s, grade %s: prepared, observed and closed", backend.Name(), *report.Grade)})
}

// controls tells each control that was judged. One that the grade does not need may be missing; its fix is told.
func controls(r *sandbox.Report) []check {
	if r == nil {
		return nil
	}
	var checks []check
	for _, c := range r.Controls {
		switch {
		case c.Observed != nil && *c.Observed:
			checks = append(checks, check{Name: string(c.Name), OK: true, Detail: "observed"})
		case c.Installed == nil:
		case !slices.Contains(r.Missing, c.Name):
			checks = append(checks, check{Name: string(c.Name), OK: true, Detail: "not there, not required: " + c.Reason, Fix: c.Name.Fix()})
		default:
			checks = append(checks, check{Name: string(c.Name), Detail: c.Reason, Fix: c.Name.Fix()})
		}
	}
	return checks
}

func (g *globals) checkPostgres(ctx context.Context) check {
	if g.databaseURL != "" {
		if err := checkURL(ctx, g.databaseURL); err != nil {
			return check{Name: "postgresql", Detail: err.Error(), Fix: "start that database, or leave --database-url out to use the embedded one"}
		}
		return check{Name: "postgresql", OK: true, Detail: "the database that was named answers"}
	}
	bin, err := embedded.Find(ctx, embedded.FindOptions{DataDir: g.data})
	if err != nil {
		return check{Name: "postgresql", Detail: err.Error(), Fix: "install PostgreSQL 15 or newer, or set PG_BIN or DATABASE_URL"}
	}
	return check{Name: "postgresql", OK: true, Detail: fmt.Sprintf("%s in %s", bin.Version, bin.Dir)}
}

func (g *globals) checkDataFolder() check {
	var s unix.Statfs_t
	dir := g.data
	err := unix.Statfs(dir, &s)
	for errors.Is(err, fs.ErrNotExist) && dir != "/" {
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &s)
	}
	if err != nil {
		return check{Name: "data folder", Detail: err.Error(), Fix: "name another folder with --data"}
	}
	free := s.Bavail * uint64(s.Bsize)
	c := check{Name: "data folder", OK: free > 1<<30, Detail: fmt.Sprintf("%s, %.1f GiB free", g.data, float64(free)/(1<<30))}
	if !c.OK {
		c.Fix = "free at least 1 GiB, or name another folder with --data"
	}
	return c
}

func (g *globals) checkKeys() check {
	dir := filepath.Join(g.data, "keys")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return check{Name: "keys", OK: true, Detail: "none yet: the first 'cairn up' makes them"}
	}
	if _, err := db.LoadKeyring(dir, false); err != nil {
		return check{Name: "keys", Detail: err.Error(), Fix: "restore " + dir + " from the backup of this installation"}
	}
	return check{Name: "keys", OK: true, Detail: dir}
}

// checkDatabase looks at the schema when the database runs; it starts none.
func (g *globals) checkDatabase(ctx context.Context) check {
	url := g.databaseURL
	if url == "" {
		running, ok := embedded.Running(g.data, databaseName)
		if !ok {
			return check{Name: "schema", OK: true, Detail: "the embedded database does not run now: not looked at"}
		}
		url = running
	}
	steps, err := db.MigrationStatus(ctx, url)
	if err != nil {
		return check{Name: "schema", Detail: err.Error(), Fix: "run 'cairn migrate up'"}
	}
	for _, step := range steps {
		if step.Applied == nil {
			return check{Name: "schema", Detail: fmt.Sprintf("%s %d %s is pending", step.Schema, step.Version, step.Name), Fix: "run 'cairn migrate up'"}
		}
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return check{Name: "schema", Detail: err.Error(), Fix: "start the database"}
	}
	defer conn.Close(ctx)
	var number string
	if err := conn.QueryRow(ctx, "SHOW server_version").Scan(&number); err != nil {
		return check{Name: "schema", Detail: err.Error(), Fix: "look at the database's log"}
	}
	return check{Name: "schema", OK: true, Detail: fmt.Sprintf("%d steps applied, PostgreSQL %s", len(steps), number)}
}
