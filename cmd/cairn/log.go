package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"cairn/db"
	"cairn/domain/catalog"
	"cairn/domain/event"
)

// logFlags are shared by the commands that read events.
type logFlags struct {
	after  int64
	json   bool
	sealed bool
	follow bool
	kinds  []string
}

func logCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "log",
		Short: "Read and verify the event log",
		Example: "  cairn log tail --after 100 --json               events after position 100, one JSON object a line\n" +
			"  cairn log show run/0192...                      one stream\n" +
			"  cairn log verify                                recompute every hash; exit code 7 on any difference",
	}
	c.AddCommand(logTail(g), logShow(g), logVerify(g), logCheckpoint(g))
	return c
}

func (f *logFlags) register(c *cobra.Command) {
	c.Flags().Int64Var(&f.after, "after", 0, "begin after this `POSITION` (in 'show': after this version)")
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object a line")
	c.Flags().BoolVar(&f.sealed, "sealed", false, "show data exactly as stored, sealed fields encrypted")
	c.Flags().StringSliceVar(&f.kinds, "kinds", nil, "only these event `KINDS`, as run.failed,run.cancelled")
}

func logTail(g *globals) *cobra.Command {
	f := &logFlags{}
	c := &cobra.Command{
		Use: "tail", Short: "Print events in the order of their positions", Args: cobra.NoArgs,
		Long: "Print events in the order of their positions, then end; with --follow, go on with new ones until Ctrl-C.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.knownKinds(); err != nil {
				return usage(err)
			}
			return g.withLog(cmd.Context(), func(ctx context.Context, d *db.DB) error { return g.tail(ctx, d, f, cmd.OutOrStdout()) })
		},
	}
	f.register(c)
	c.Flags().BoolVarP(&f.follow, "follow", "f", false, "wait for new events")
	return c
}

func logShow(g *globals) *cobra.Command {
	f := &logFlags{}
	c := &cobra.Command{
		Use: "show STREAM", Short: "Print the events of one stream, named like run/ID", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			stream, err := parseStream(args[0])
			if err := errors.Join(err, f.knownKinds()); err != nil {
				return usage(err)
			}
			return g.withLog(cmd.Context(), func(ctx context.Context, d *db.DB) error {
				return g.show(ctx, d, stream, f, cmd.OutOrStdout())
			})
		},
	}
	f.register(c)
	return c
}

// knownKinds refuses a misspelt kind, which would look like a log without such events. With --sealed a later
// version's kinds can be asked for.
func (f *logFlags) knownKinds() error {
	registry := catalog.Registry()
	for _, kind := range f.kinds {
		if _, known := registry.Definition(kind); !known && !f.sealed {
			return fmt.Errorf("--kinds %q: this version has no such event: docs/reference/events.md lists them; --sealed shows unknown ones as stored", kind)
		}
	}
	return nil
}

func parseStream(text string) (event.Ref, error) {
	kind, id, ok := strings.Cut(text, "/")
	if !ok {
		return event.Ref{}, fmt.Errorf("stream %q: want KIND/ID, as in run/0192f0c1-7a1e-7000-8000-000000000001", text)
	}
	parsed, err := event.ParseID(id)
	if err != nil {
		return event.Ref{}, fmt.Errorf("stream %q: %w", text, err)
	}
	return event.Ref{Kind: kind, ID: parsed}, nil
}

func (g *globals) tail(ctx context.Context, d *db.DB, f *logFlags, out io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	identity, err := d.Identity(ctx)
	if err != nil {
		return err
	}
	if err := identity.Check(db.Cursor{Position: f.after}); err != nil {
		return err
	}
	if f.follow {
		return d.Tail(ctx, db.Cursor{Position: f.after}, db.Scope{}, func(records []event.Record) error { return g.print(ctx, d, f, out, records) })
	}
	for after := f.after; after < identity.Head; {
		records, err := d.Since(ctx, after, db.Scope{}, 1000)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			break
		}
		if err := g.print(ctx, d, f, out, records); err != nil {
			return err
		}
		after = records[len(records)-1].Position
	}
	return nil
}

func (g *globals) show(ctx context.Context, d *db.DB, stream event.Ref, f *logFlags, out io.Writer) error {
	printed := false
	for after := f.after; ; {
		records, err := d.Stream(ctx, stream.ID, after, 1000)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			break
		}
		if kind := event.StreamKind(records[0].Kind); kind != stream.Kind {
			return usage(fmt.Errorf("%s is not a %s but a %s: ask for %s/%s", stream.ID, stream.Kind, kind, kind, stream.ID))
		}
		if err := g.print(ctx, d, f, out, records); err != nil {
			return err
		}
		after, printed = records[len(records)-1].Version, true
	}
	if !printed && f.after == 0 {
		return fmt.Errorf("there is no stream %s", stream)
	}
	return nil
}

// print writes records as JSON lines or as text.
func (g *globals) print(ctx context.Context, d *db.DB, f *logFlags, out io.Writer, records []event.Record) error {
	buffered := bufio.NewWriter(out)
	for i := range records {
		if len(f.kinds) > 0 && !slices.Contains(f.kinds, records[i].Kind) {
			continue
		}
		line := db.ShowSealed(&records[i])
		if !f.sealed {
			var err error
			if line, err = d.Show(ctx, &records[i]); err != nil {
				return fmt.Errorf("%w (--sealed shows the stored data without opening it)", err)
			}
		}
		if err := writeLine(buffered, line, f.json || g.output != "text"); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

func writeLine(out io.Writer, line db.Line, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(line)
	}
	_, err := fmt.Fprintf(out, "%8d  %s  %-28s v%-4d %s  %s\n          %s\n", line.Position, line.At, line.Kind, line.Version, line.Stream, line.Actor, line.Data)
	return err
}

// withLog opens the log of the installation, as it is: nothing is migrated.
func (g *globals) withLog(ctx context.Context, fn func(context.Context, *db.DB) error) error {
	return g.withOwner(ctx, false, func(ctx context.Context, in *installation) error {
		d, err := in.open(ctx, in.serverURL, "cairn log", g.logger())
		if err != nil {
			return err
		}
		defer d.Close()
		return fn(ctx, d)
	})
}

// exactly wants n arguments and calls anything else a usage error.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(n)(cmd, args); err != nil {
			return usage(fmt.Errorf("%s: %w", cmd.UseLine(), err))
		}
		return nil
	}
}
