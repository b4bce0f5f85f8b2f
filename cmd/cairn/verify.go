package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"cairn/db"
	"cairn/db/audit"
)

func logVerify(g *globals) *cobra.Command {
	var blobs bool
	c := &cobra.Command{
		Use: "verify", Short: "Recompute the log from its rows and compare it with the signed checkpoints", Args: cobra.NoArgs,
		Long: "Recompute every hash of the log from its columns, in the order of positions, and compare the tree with every\n" +
			"signed checkpoint of the database and of the file checkpoints.log outside it. Writers may go on meanwhile.\n" +
			"Exit code 7 on the first difference, with its position or event id.",
		Example: "  cairn log verify\n  cairn log verify --blobs --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.withOwner(cmd.Context(), false, func(ctx context.Context, in *installation) error {
				return g.verifyLog(ctx, in, blobs, cmd.OutOrStdout())
			})
		},
	}
	c.Flags().BoolVar(&blobs, "blobs", false, "also read every blob that an event names")
	return c
}

func (g *globals) verifyLog(ctx context.Context, in *installation, blobs bool, out io.Writer) error {
	if err := g.allowOutput("text", "json"); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	conn, err := pgx.Connect(ctx, in.direct())
	if err != nil {
		return unavailable(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	o := audit.VerifyOptions{Verifier: in.keys.Verifier, CheckpointFile: in.checkpointFile(), Progress: g.meter("verified")}
	if blobs {
		o.Blobs = in.blobs
	}
	report, err := audit.Verify(ctx, conn, o)
	if g.output == "json" {
		broken, _ := errors.AsType[*audit.Broken](err)
		return errors.Join(err, json.NewEncoder(out).Encode(map[string]any{"verified": err == nil, "report": report, "broken": broken}))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "log %s, incarnation %d: %d events in %d streams are unaltered; %d of them signed by %d checkpoints, %d wait for a position\n",
		report.LogID, report.Incarnation, report.Events, report.Streams, report.Signed, report.Checkpoints, report.Waiting)
	if !report.FileChecked {
		g.say("the file %s does not exist: without it nobody can tell whether the end of the log was cut off", in.checkpointFile())
	}
	return nil
}

// meter says now and then how far a long work has come.
func (g *globals) meter(verb string) func(position, head int64) {
	last := time.Now()
	return func(position, head int64) {
		if time.Since(last) > time.Second {
			last = time.Now()
			g.say("%s %d of %d", verb, position, head)
		}
	}
}

func logCheckpoint(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "checkpoint", Short: "Sign the head of the log now and print the signed note", Args: cobra.NoArgs,
		Long: "Sign the head of the log now and print the newest signed note (RFC 6962 tree, signed note format). Keep it in\n" +
			"a place of your own: 'cairn log verify' proves later that the log still begins with what it covers.",
		PreRunE: func(*cobra.Command, []string) error { return g.allowOutput("text") },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.withOwner(cmd.Context(), false, func(ctx context.Context, in *installation) error {
				d, err := in.open(ctx, in.serverURL, "cairn log", g.logger())
				if err != nil {
					return err
				}
				defer d.Close()
				return printCheckpoint(ctx, d, in, cmd.OutOrStdout(), g.logger())
			})
		},
	}
}

func printCheckpoint(ctx context.Context, d *db.DB, in *installation, out io.Writer, log *slog.Logger) error {
	c := audit.NewCheckpointer(d, in.checkpointFile(), log)
	if _, err := c.Once(ctx); err != nil {
		return err
	}
	newest, err := c.Last(ctx)
	if err != nil {
		return err
	}
	if newest == "" {
		return errors.New("the log is empty: there is nothing to sign")
	}
	_, err = fmt.Fprint(out, newest)
	return err
}
