package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cairn/db/bench"
)

func benchCommand(g *globals) *cobra.Command {
	var asJSON bool
	o := bench.Options{}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure the log against its floors, as ratios in one run",
		Long: "Measure on a private PostgreSQL of its own, in a temporary folder: each figure beside its floor in the same\n" +
			"run, in turn, as the median of at least five rounds. Exit code 7 when a gate is missed.\n\nGroups: " + strings.Join(benchGroups(), ", ") + ".",
		Example: "  cairn bench\n  cairn bench --only append --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			for _, name := range o.Only {
				if !slices.Contains(benchGroups(), name) {
					return usage(fmt.Errorf("--only %s: no such group", name))
				}
			}
			if o.Rounds < 5 {
				return usage(fmt.Errorf("--rounds %d: at least 5, or the median says nothing", o.Rounds))
			}
			o.Progress = g.status()
			results, err := g.bench(ctx, o)
			if err != nil {
				return err
			}
			if asJSON || g.output == "json" {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(results)
			} else {
				err = bench.Table(cmd.OutOrStdout(), results)
			}
			if err == nil && !bench.Passed(results) {
				err = withCode(exitUnverified, errors.New("a gate was missed: on a busy machine, measure again before you believe it"))
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer as JSON")
	c.Flags().StringSliceVar(&o.Only, "only", nil, "only these `GROUPS`")
	c.Flags().IntVar(&o.Rounds, "rounds", 5, "rounds of each comparison")
	c.Flags().DurationVar(&o.Length, "length", 1500*time.Millisecond, "length of one measurement")
	return c
}

// benchGroups are those of the log, and those that need more rooms.
func benchGroups() []string { return append(bench.Groups(), sandboxGroup, serverGroup) }

func (g *globals) bench(ctx context.Context, o bench.Options) ([]bench.Result, error) {
	wanted := func(name string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, name) }
	var results []bench.Result
	if slices.ContainsFunc(bench.Groups(), wanted) {
		var err error
		if results, err = bench.Run(ctx, o); err != nil {
			return results, err
		}
	}
	if wanted(sandboxGroup) {
		more, err := benchSandbox(ctx, o.Rounds)
		if results = append(results, more...); err != nil {
			return results, err
		}
	}
	if wanted(serverGroup) {
		more, err := g.benchServer(ctx, o.Rounds, o.Length)
		return append(results, more...), err
	}
	return results, nil
}
