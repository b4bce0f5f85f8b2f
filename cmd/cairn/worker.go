package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"cairn/db"
	rules "cairn/domain/check"
	"cairn/domain/conversation"
	"cairn/sandbox"
	"cairn/sandbox/egress"
	"cairn/worker"
	"cairn/worker/harness"
)

type workerFlags struct {
	slots int
	roots []string
	tools []string
	grade string

	egressCeiling string // empty: none
}

func workerCommand(g *globals) *cobra.Command {
	f := &workerFlags{}
	var server, name string
	c := &cobra.Command{
		Use:   "worker",
		Short: "Run one worker process: it claims runs and executes them in sandboxes",
		Long: "Run one worker process on a database that 'cairn migrate up' has prepared. It claims queued runs, prepares\n" +
			"a sandbox for each, and asks models through the gateway of a server. SIGTERM drains: what runs is handed\n" +
			"back at the next safe point, so that another worker goes on with it.",
		Example: "  cairn worker --database-url postgres://cairn_worker@db/cairn --server http://127.0.0.1:8080 --slots 4",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return g.work(ctx, f, server, name)
		},
	}
	f.register(c)
	c.Flags().StringVar(&server, "server", "http://127.0.0.1:8080", "`URL` of a server, for its model gateway")
	c.Flags().StringVar(&name, "name", "", "`NAME` of this worker in the log; default: host and process id")
	return c
}

func (f *workerFlags) register(c *cobra.Command) {
	c.Flags().IntVar(&f.slots, "slots", runtime.NumCPU(), "how many runs at once")
	c.Flags().StringArrayVar(&f.roots, "root", nil, "offer the folder `NAME=DIR` read-only as a source of workspaces (repeatable)")
	c.Flags().StringArrayVar(&f.tools, "tool", nil, "offer the tool chain at `PATH` read-only inside sandboxes, at the same path (repeatable; default: GOROOT)")
	c.Flags().StringVar(&f.egressCeiling, "egress-ceiling", string(egress.None), "most that agents may reach from sandboxes, as a `TIER`: none, registries, list or open")
	f.requireGrade(c, sandbox.GradeC)
}

// requireGrade registers the flag with what a command asks for when nobody says otherwise.
func (f *workerFlags) requireGrade(c *cobra.Command, grade sandbox.Grade) {
	c.Flags().StringVar(&f.grade, "require-grade", string(grade), "lowest `GRADE` of a sandbox that is accepted: C, C-, D or F; below it a run is refused before anything executes")
}

func parseGrade(text string) (sandbox.Grade, error) {
	grade, err := sandbox.ParseGrade(text)
	if err != nil {
		return "", usage(fmt.Errorf("--require-grade: %w", err))
	}
	return grade, nil
}

// args are the flags as another process takes them.
func (f *workerFlags) args() []string {
	args := []string{"--slots", strconv.Itoa(f.slots)}
	if f.egressCeiling != "" {
		args = append(args, "--egress-ceiling", f.egressCeiling)
	}
	for _, r := range f.roots {
		args = append(args, "--root", r)
	}
	for _, t := range f.tools {
		args = append(args, "--tool", t)
	}
	return append(args, "--require-grade", f.grade)
}

func (g *globals) work(ctx context.Context, f *workerFlags, server, name string) error {
	log := g.logger().With("process", "worker")
	in, err := g.openInstallation(ctx, false)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer in.close(g)
	d, err := in.open(ctx, in.workerURL, "cairn worker", log)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer d.Close()
	o, err := f.options(in, d, log)
	if err != nil {
		return err
	}
	o.Gateway, o.Queues = gatewayOf(server), []string{conversation.DefaultQueue}
	words := d.NewDeltaWriter()
	o.OnDelta = func(x harness.Delta) {
		words.Add(db.Delta{Space: x.Space, Topic: x.Topic, Run: x.Run, Epoch: x.Epoch, Step: x.Step, Attempt: x.Attempt, Text: x.Text})
	}
	if name != "" {
		o.Name = name
	}
	w, err := worker.New(o)
	if err != nil {
		return err
	}
	log.Info("working", "name", o.Name, "slots", o.Slots)
	speaking, hush := context.WithCancel(context.WithoutCancel(ctx))
	var side sync.WaitGroup
	side.Go(func() { words.Run(speaking) })
	defer side.Wait()
	defer hush()
	return w.Run(ctx)
}

// options are what every worker process is made of; the gateway and the queues are the caller's.
func (f *workerFlags) options(in *installation, d *db.DB, log *slog.Logger) (worker.Options, error) {
	if f.slots < 1 || f.slots > 1000 {
		return worker.Options{}, usage(fmt.Errorf("--slots %d: use 1 to 1000", f.slots))
	}
	if f.egressCeiling != "" && !slices.Contains(egress.Tiers(), egress.Tier(f.egressCeiling)) {
		return worker.Options{}, usage(fmt.Errorf("--egress-ceiling %q: use one of %v", f.egressCeiling, egress.Tiers()))
	}
	roots, err := parseRoots(f.roots)
	if err != nil {
		return worker.Options{}, usage(err)
	}
	tools, err := toolChains(f.tools)
	if err != nil {
		return worker.Options{}, usage(err)
	}
	grade, err := parseGrade(f.grade)
	if err != nil {
		return worker.Options{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		return worker.Options{}, unavailable(err)
	}
	return worker.Options{
		DB: d, Sandboxes: sandbox.NewNative(sandbox.Options{}), DataDir: in.dir, Name: fmt.Sprintf("%s-%d", host, os.Getpid()), Host: host,
		Slots: f.slots, Roots: roots, Tools: tools, Grade: grade, Log: log, Offline: offline,
		Env: map[string]string{"GOTOOLCHAIN": "local"}, EgressCeiling: egress.Tier(f.egressCeiling),
	}, nil
}

// offline tells Go inside a sandbox without a way out not to wait for one.
var offline = map[string]string{"GOPROXY": "off"}

func parseRoots(flags []string) (map[string]string, error) {
	roots := map[string]string{}
	for _, text := range flags {
		name, dir, ok := strings.Cut(text, "=")
		if !ok || !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("--root %q: want NAME=DIR with an absolute folder", text)
		}
		if err := rules.Name("name", name, maxRootName); err != nil {
			return nil, fmt.Errorf("--root %q: %w", text, err)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("--root %q: %s is not a folder that can be read", text, dir)
		}
		if _, twice := roots[name]; twice {
			return nil, fmt.Errorf("--root %q: the name %s is used twice", text, name)
		}
		roots[name] = dir
	}
	return roots, nil
}

// maxRootName is how long the name of a root may be, as in every source.
const maxRootName = 64

// rootNames are the names of what workers offer, in order. A server needs to know no more: it may be on another host.
func rootNames(flags []string) ([]string, error) {
	names := []string{}
	for _, text := range flags {
		name, _, _ := strings.Cut(text, "=")
		if err := rules.Name("name", name, maxRootName); err != nil {
			return nil, fmt.Errorf("--root %q: %w", text, err)
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("--root %q: the name %s is used twice", text, name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// gatewayOf is the model gateway of a server.
func gatewayOf(server string) string { return strings.TrimRight(server, "/") + "/gateway" }

// toolChains are the folders of tool chains; without any flag the Go tool chain, when there is one.
func toolChains(flags []string) ([]string, error) {
	if len(flags) == 0 {
		if root := goRoot(); root != "" {
			flags = []string{root}
		}
	}
	tools := []string{}
	for _, path := range flags {
		resolved, err := filepath.Abs(path)
		if err == nil {
			_, err = os.Stat(resolved)
		}
		if err != nil {
			return nil, fmt.Errorf("--tool %q: %w", path, err)
		}
		tools = append(tools, resolved)
	}
	return tools, nil
}

// goRoot finds the Go tool chain: GOROOT, else beside the go command in PATH.
func goRoot() string {
	if root := os.Getenv("GOROOT"); root != "" {
		return root
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		command, err := filepath.EvalSymlinks(filepath.Join(dir, "go"))
		if err != nil || !filepath.IsAbs(command) {
			continue
		}
		root := filepath.Dir(filepath.Dir(command))
		if _, err := os.Stat(filepath.Join(root, "pkg", "tool")); err == nil {
			return root
		}
	}
	return ""
}
