package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"cairn/db/audit"
)

func replayCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "replay",
		Short: "Prove that the projections equal the log, or rebuild them",
		Example: "  cairn replay verify                             exit code 7 when a row differs, naming table, key and event\n" +
			"  cairn replay rebuild                            rebuild beside the live tables and compare\n" +
			"  cairn replay rebuild --swap                     and put the rebuilt tables in their place",
	}
	c.AddCommand(replayVerify(g), replayRebuild(g))
	return c
}

func (g *globals) replayOptions(in *installation) audit.ReplayOptions {
	last := time.Now()
	return audit.ReplayOptions{URL: in.direct(), Keys: in.keys, Blobs: in.blobs, Progress: func(p audit.ReplayProgress) {
		if time.Since(last) > time.Second {
			last = time.Now()
			g.say("folded position %d of %d (%.0f events/s)", p.Position, p.Head, p.Rate)
		}
	}}
}

func replayVerify(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Fold the log again and compare every row of every projection", Args: cobra.NoArgs,
		Long: "Fold the whole log again, twice in different orders, and compare every row of every projection, in one\n" +
			"snapshot. Writers may go on meanwhile. Exit code 7 on a difference, naming table, key and event.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.withOwner(cmd.Context(), false, func(ctx context.Context, in *installation) error {
				return g.verifyReplay(ctx, in, cmd.OutOrStdout())
			})
		},
	}
}

func (g *globals) verifyReplay(ctx context.Context, in *installation, out io.Writer) error {
	if err := g.allowOutput("text", "json"); err != nil {
		return err
	}
	report, err := audit.VerifyReplay(ctx, g.replayOptions(in))
	if g.output == "json" {
		return errors.Join(err, json.NewEncoder(out).Encode(map[string]any{"equal": err == nil, "report": report}))
	}
	if err != nil {
		return err
	}
	rows := int64(0)
	for _, table := range report.Tables {
		rows += table.Rows
	}
	_, err = fmt.Fprintf(out, "%d events up to position %d: all %d rows of %d projections equal a fold of the log\n", report.Events, report.Position, rows, len(report.Tables))
	return err
}

func replayRebuild(g *globals) *cobra.Command {
	var until int64
	var swap, changed bool
	c := &cobra.Command{
		Use: "rebuild", Short: "Rebuild the projections beside the live ones; --swap puts them in their place", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if until < 0 || until > 0 && swap {
				return usage(fmt.Errorf("--until %d: give a position, and not together with --swap: only a rebuild to the head can go live", until))
			}
			return g.withOwner(cmd.Context(), false, func(ctx context.Context, in *installation) error {
				return g.rebuild(ctx, in, until, swap, !changed, cmd.OutOrStdout())
			})
		},
	}
	c.Flags().Int64Var(&until, "until", 0, "stop after this `POSITION`")
	c.Flags().BoolVar(&swap, "swap", false, "put the rebuilt tables in the place of the live ones, without downtime")
	c.Flags().BoolVar(&changed, "allow-differences", false, "with --swap: also when rows differ, to mend them or to bring in changed projections")
	return c
}

func (g *globals) rebuild(ctx context.Context, in *installation, until int64, swap, equal bool, out io.Writer) (err error) {
	if err := g.allowOutput("text", "json"); err != nil {
		return err
	}
	began := time.Now()
	rebuilt, err := audit.Rebuild(ctx, g.replayOptions(in), until)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rebuilt.Close()) }()
	g.say("rebuilt up to position %d in %v", rebuilt.Position(), time.Since(began).Round(time.Millisecond))
	if !swap {
		return g.printRebuilt(out, map[string]any{"position": rebuilt.Position(), "swapped": false})
	}
	report, err := rebuilt.Swap(ctx, audit.SwapOptions{RequireEqual: equal})
	if err != nil {
		return err
	}
	if _, err := audit.DropOld(ctx, in.direct()); err != nil {
		return fmt.Errorf("the rebuilt tables are live, but the old ones in schema %s could not be dropped: %w", report.Old, err)
	}
	g.say("swapped: appends waited %v", time.Duration(report.HeldUS)*time.Microsecond)
	return g.printRebuilt(out, map[string]any{"position": report.Position, "swapped": true, "held_us": report.HeldUS})
}

func (g *globals) printRebuilt(out io.Writer, answer map[string]any) error {
	if g.output == "json" {
		return json.NewEncoder(out).Encode(answer)
	}
	_, err := fmt.Fprintf(out, "position %v, swapped: %v\n", answer["position"], answer["swapped"])
	return err
}
