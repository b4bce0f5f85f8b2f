package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unicode"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"cairn/db"
	"cairn/db/audit"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/sandbox"
	"cairn/server"
	"cairn/server/gateway"
	"cairn/worker"
)

type runFlags struct {
	dir    string
	model  string
	apply  string
	models string
	worker workerFlags
}

func runCommand(g *globals) *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run [flags] PROMPT",
		Short: "Run an agent once on a local folder, staged: the folder itself is not changed",
		Long: "Run an agent once. It works in a sandbox without network on a staged copy of --dir, with the same runtime\n" +
			"as 'cairn up': every step is an event of the log. The answer goes to standard output, progress to standard\n" +
			"error; with --output jsonl every event is one line. Without a provider's key the model 'demo' runs the lines\n" +
			"of the prompt that begin with '$ '. A lone - reads the prompt from standard input. Ctrl-C cancels the run.\n\n" +
			"Exit codes: 0 done, 2 usage, 4 the model or the run failed, 6 cancelled, 8 database or sandbox unavailable.",
		Example: "  cairn run --dir . '$ go vet ./...'\n" +
			"  cairn run --dir . --model local --output jsonl 'Explain what this does.'\n" +
			"  printf '%s\\n' '$ go test ./...' 'write NOTE.md: tests were run' | cairn run --dir . -",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			prompt, err := readPrompt(cmd, args[0])
			if err != nil {
				return err
			}
			return g.runOnce(cmd, f, prompt)
		},
	}
	c.Flags().StringVar(&f.dir, "dir", "", "`DIR` that the workspace starts from; default: an empty workspace")
	c.Flags().StringVar(&f.model, "model", gateway.DemoModel, "`NAME` of the model")
	c.Flags().StringVar(&f.apply, "apply", "none", "what happens to the changes: none keeps them beside the folder")
	c.Flags().StringVar(&f.models, "models", "", "models `FILE`; default: models.json in the data folder, if there is one")
	c.Flags().StringArrayVar(&f.worker.tools, "tool", nil, "mount the tool chain at `PATH` read-only, at the same path (repeatable; default: GOROOT)")
	f.worker.slots = 1
	f.worker.requireGrade(c, sandbox.GradeCMinus)
	c.RegisterFlagCompletionFunc("apply", cobra.FixedCompletions([]string{"none"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// localRoot is the name under which the run's own worker offers --dir.
const localRoot = "local"

func (g *globals) runOnce(cmd *cobra.Command, f *runFlags, prompt string) error {
	if f.apply != "none" {
		return usage(fmt.Errorf("--apply %s: only none is possible in this version: the changes stay beside the folder", f.apply))
	}
	source, err := f.source(cmd.Flags().Changed("dir"), g.data)
	if err != nil {
		return usage(err)
	}
	if _, err := parseGrade(f.worker.grade); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	in, err := g.openInstallation(ctx, true)
	if err != nil {
		return err
	}
	defer in.close(g)
	if err := in.migrate(ctx, g); err != nil {
		return err
	}
	log := quietLogger(g)
	d, err := in.open(ctx, in.serverURL, "cairn run", log)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer d.Close()
	r := &localRun{globals: g, flags: f, in: in, db: d, log: log, source: source, out: cmd.OutOrStdout()}
	return r.execute(ctx, prompt)
}

// source is what the workspace starts from. An empty --dir is a variable that was not set, not a wish for an
// empty workspace.
func (f *runFlags) source(given bool, data string) (run.Source, error) {
	if !given {
		return run.Source{Kind: run.SourceNone}, nil
	}
	if f.dir == "" {
		return run.Source{}, errors.New("--dir is empty: name a folder, or leave --dir out for an empty workspace")
	}
	dir, err := filepath.Abs(f.dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return run.Source{}, fmt.Errorf("--dir: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return run.Source{}, fmt.Errorf("--dir %s: not a folder that can be read", f.dir)
	}
	if inside(data, dir) {
		return run.Source{}, fmt.Errorf("--dir %s holds the data folder %s, where the run's changes and all keys lie: name a folder within, or put --data elsewhere", f.dir, data)
	}
	return run.Source{Kind: run.SourceFolder, Root: localRoot, Path: dir}, nil
}

// inside reports whether path, which need not exist yet, is dir or lies below it.
func inside(path, dir string) bool {
	path, err := filepath.Abs(path)
	for err == nil {
		resolved, missing := filepath.EvalSymlinks(path)
		if missing == nil {
			below, err := filepath.Rel(dir, resolved)
			return err == nil && filepath.IsLocal(below)
		}
		if path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	return false
}

// runtime is the part of the system that a run of its own needs: a gateway and a worker in this process.
func (r *localRun) runtime(ctx context.Context, queue string) (wait func() error, err error) {
	models, err := r.loadModels(r.flags.models)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, unavailable(err)
	}
	o, err := r.flags.worker.options(r.in, r.db, r.log)
	if err != nil {
		return nil, err
	}
	o.Gateway, o.Queues = gatewayOf("http://"+listener.Addr().String()), []string{queue}
	if r.source.Kind == run.SourceFolder {
		o.Roots[localRoot] = r.source.Path
	}
	w, err := worker.New(o)
	if err != nil {
		return nil, err
	}
	for _, tool := range o.Tools {
		r.tools = append(r.tools, run.Mount{Source: tool, Target: tool})
	}
	ended := make(chan error, 2)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	var signing sync.WaitGroup
	signing.Go(func() { audit.NewCheckpointer(r.db, r.in.checkpointFile(), r.log).Run(serving) })
	served := server.Options{DB: r.db, Models: models, DemoPause: gateway.DefaultDemoPause, Log: r.log}
	go func() { ended <- server.ServeModels(serving, served, listener) }()
	go func() {
		err := w.Run(ctx)
		stopServing()
		signing.Wait()
		ended <- err
	}()
	return func() error { return errors.Join(<-ended, <-ended) }, nil
}

// post makes the conversation and its only message.
func (r *localRun) post(ctx context.Context, l local, queue, prompt string) (conversation.Posted, event.ID, error) {
	conversationID := newID()
	meta := func() event.Meta { return event.Meta{Actor: l.actor(), At: db.Now()} }
	_, err := r.db.Execute(ctx, conversation.Open{
		Conversation: conversationID, Space: l.space, Agent: l.agent, Title: title(prompt), Source: r.source, Mounts: r.tools, Queue: queue,
	}, meta())
	if err != nil {
		return conversation.Posted{}, conversationID, err
	}
	result, err := r.db.Execute(ctx, conversation.PostMessage{
		Conversation: conversationID, Space: l.space, Agent: l.agent, Message: newID(), Turn: newID(), Run: newID(), Text: prompt, Model: r.flags.model,
	}, meta())
	if err != nil {
		return conversation.Posted{}, conversationID, err
	}
	var posted conversation.Posted
	err = json.Unmarshal(result.Answer, &posted)
	return posted, conversationID, err
}

func newID() event.ID { return event.ID(uuid.Must(uuid.NewV7())) }

// title is the beginning of the prompt's first line. A prompt may hold tabs and escapes, a title may not.
func title(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	line = strings.Join(strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if runes := []rune(line); len(runes) > 80 {
		line = strings.TrimSpace(string(runes[:79])) + "…"
	}
	return cmp.Or(line, "untitled") // of control characters alone
}
