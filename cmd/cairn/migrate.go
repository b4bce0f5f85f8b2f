package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"cairn/db"
)

func migrateCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database schema up to this version",
		Long: "Bring the database schema up to this version. 'cairn up' and 'cairn run' do it by themselves on their\n" +
			"embedded database; 'cairn server' and 'cairn worker' never do. Safe to run twice and from several\n" +
			"processes at once; a step that waits for a table lock gives up after 5 s and is tried again.",
		Example: "  cairn migrate plan                              what would be done\n" +
			"  DATABASE_URL=postgres://... cairn migrate up    an own database, as the role that owns it",
	}
	c.AddCommand(
		&cobra.Command{Use: "up", Short: "Apply what is pending", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return g.withOwner(cmd.Context(), true, func(ctx context.Context, in *installation) error {
				if err := in.migrate(ctx, g); err != nil {
					return err
				}
				g.say("the schema is at this version")
				return nil
			})
		}},
		&cobra.Command{Use: "status", Short: "List all steps and when they were applied", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return g.printMigrations(cmd.Context(), cmd.OutOrStdout(), false)
		}},
		&cobra.Command{Use: "plan", Short: "List the steps that are pending", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return g.printMigrations(cmd.Context(), cmd.OutOrStdout(), true)
		}},
	)
	return c
}

// withOwner gives fn the installation without opening the log. Ctrl-C ends fn, not this process, which must stop the
// PostgreSQL that it started.
func (g *globals) withOwner(ctx context.Context, create bool, fn func(context.Context, *installation) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	in, err := g.openInstallation(ctx, create)
	if err != nil {
		return err
	}
	defer in.close(g)
	return interrupted(ctx, asOwner(fn(ctx, in)))
}

func (g *globals) printMigrations(ctx context.Context, out io.Writer, pendingOnly bool) error {
	if err := g.allowOutput("text", "json"); err != nil {
		return err
	}
	return g.withOwner(ctx, false, func(ctx context.Context, in *installation) error {
		steps, err := db.MigrationStatus(ctx, in.ownerURL)
		if err != nil {
			return unavailable(err)
		}
		shown := make([]db.Migration, 0, len(steps))
		for _, step := range steps {
			if !pendingOnly || step.Applied == nil {
				shown = append(shown, step)
			}
		}
		if g.output == "json" {
			return json.NewEncoder(out).Encode(shown)
		}
		if len(shown) == 0 {
			g.say("nothing is pending")
		}
		for _, step := range shown {
			applied := "pending"
			if step.Applied != nil {
				applied = step.Applied.UTC().Format("2006-01-02 15:04:05Z")
			}
			fmt.Fprintf(out, "%-4s %5d  %-22s %s\n", step.Schema, step.Version, step.Name, applied)
		}
		return nil
	})
}
