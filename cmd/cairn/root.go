package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cairn/db/embedded"
)

// globals are the flags that every command has.
type globals struct {
	data        string
	databaseURL string
	directURL   string
	output      string
	quiet       bool
	noColor     bool
}

func newRoot() *cobra.Command {
	g := &globals{}
	root := &cobra.Command{
		Use:   "cairn",
		Short: "Run AI agents for a team, in sealed sandboxes, over one event log",
		Long: "Cairn runs AI agents in the background, in sealed sandboxes, and appends every state change to one\n" +
			"event log that can be replayed and verified.\n\n" +
			"Every flag can be given by an environment variable: CAIRN_ and its name, as in CAIRN_DATA=/srv/cairn.",
		Example: "  cairn up                                        everything, on an embedded PostgreSQL\n" +
			"  cairn run --dir . '$ ls'                        one local run of the demo model\n" +
			"  cairn log verify                                prove that the log is unaltered",
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return g.prepare(cmd) },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&g.data, "data", "", "data `DIR`; default: the user's data folder, cairn (root: /var/lib/cairn)")
	flags.StringVar(&g.databaseURL, "database-url", "", "use the PostgreSQL at this `URL` instead of the embedded one (also DATABASE_URL)")
	flags.StringVar(&g.directURL, "database-direct-url", "", "the direct `URL` of the same database, where the other leads through a pooler (also DATABASE_DIRECT_URL)")
	flags.StringVar(&g.output, "output", "text", "`FORMAT` of standard output: text, json or jsonl where a command has it")
	flags.BoolVar(&g.quiet, "quiet", false, "no status on standard error")
	flags.BoolVar(&g.noColor, "no-color", false, "no colours (also NO_COLOR)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	root.AddGroup(&cobra.Group{ID: "work", Title: "Work:"}, &cobra.Group{ID: "prove", Title: "Prove:"}, &cobra.Group{ID: "operate", Title: "Operate:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			if c.HasSubCommands() { // alone it shows its help; a word it does not know is a mistake, not a wish for help
				c.Args, c.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			}
			root.AddCommand(c)
		}
	}
	add("work", upCommand(g), runCommand(g))
	add("prove", logCommand(g), replayCommand(g))
	add("operate", serverCommand(g), workerCommand(g), migrateCommand(g), doctorCommand(g), benchCommand(g), adminCommand(g), versionCommand(g))
	strictHelp(root)
	return root
}

// strictHelp makes a word that 'help' and 'completion' do not know a mistake; the library answers it with help.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args)
				return err
			}
		}
	}
}

// prepare completes the flags from the environment and checks them.
func (g *globals) prepare(cmd *cobra.Command) error {
	if err := fromEnvironment(cmd.Flags()); err != nil {
		return err
	}
	if g.databaseURL == "" {
		g.databaseURL = os.Getenv("DATABASE_URL")
	}
	if g.directURL == "" {
		g.directURL = os.Getenv("DATABASE_DIRECT_URL")
	}
	g.noColor = g.noColor || os.Getenv("NO_COLOR") != ""
	if g.output != "text" && g.output != "json" && g.output != "jsonl" {
		return usage(fmt.Errorf("--output %q: use text, json or jsonl", g.output))
	}
	if g.data == "" {
		dir, err := embedded.DefaultDir()
		if err != nil {
			return usage(fmt.Errorf("--data: %w", err))
		}
		g.data = dir
	}
	return nil
}

// fromEnvironment sets each flag that was not given from CAIRN_<NAME>.
func fromEnvironment(flags *pflag.FlagSet) error {
	var all error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "CAIRN_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || f.Changed || f.Name == "help" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			all = errors.Join(all, usage(fmt.Errorf("%s=%q: %w", name, value, err)))
		}
	})
	return all
}

// status is where progress goes: standard error, or nowhere with --quiet.
func (g *globals) status() io.Writer {
	if g.quiet {
		return io.Discard
	}
	return os.Stderr
}

func (g *globals) say(format string, args ...any) { fmt.Fprintf(g.status(), format+"\n", args...) }

// logger is for the processes that stay: one line an event on standard error.
func (g *globals) logger() *slog.Logger {
	level := slog.LevelInfo
	if g.quiet {
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// allowOutput refuses formats that a command does not have.
func (g *globals) allowOutput(formats ...string) error {
	for _, f := range formats {
		if f == g.output {
			return nil
		}
	}
	return usage(fmt.Errorf("--output %s: this command has %s", g.output, strings.Join(formats, " and ")))
}
