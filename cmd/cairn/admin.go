package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"cairn/db"
	"cairn/db/audit"
	"cairn/domain/account"
	"cairn/domain/catalog"
	"cairn/domain/event"
	"cairn/domain/space"
)

func adminCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "admin",
		Short: "Rare acts of an operator: login codes, disabling accounts, after a restore, erasure",
		Example: "  cairn admin login ann@example.org --name Ann    a code with which a person signs in, once within an hour\n" +
			"  cairn admin disable ann@example.org             end her sessions and let her sign in no more\n" +
			"  cairn admin restored                            after a backup was restored: readers start over\n" +
			"  cairn admin erase account ID                    destroy the key of a person's data, for ever",
	}
	c.AddCommand(adminLogin(g), adminDisable(g), adminEnable(g), adminRestored(g), adminErase(g))
	return c
}

func adminRestored(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "restored", Short: "Begin a new incarnation of the log after its database was restored from a backup", Args: cobra.NoArgs,
		Long: "Call it once after the database was restored from a backup and before anything else uses it. Readers with a\n" +
			"cursor of the earlier life are told to start over; 'cairn log verify' accepts checkpoints of the earlier life\n" +
			"up to the restored head. It is signed, in the database and in the checkpoint file. Keys that an older vault\n" +
			"brought back of subjects that the log says are erased are destroyed again.",
		PreRunE: func(*cobra.Command, []string) error { return g.allowOutput("text") },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.withOwner(cmd.Context(), false, func(ctx context.Context, in *installation) error {
				conn, err := pgx.Connect(ctx, in.direct())
				if err != nil {
					return unavailable(err)
				}
				defer conn.Close(ctx)
				checkpoint, err := audit.Restored(ctx, conn, in.keys, in.checkpointFile())
				if err != nil {
					return err
				}
				destroyed, err := audit.EnforceErasures(ctx, in.direct(), catalog.Registry())
				if err != nil {
					return fmt.Errorf("the new incarnation began, but keys of erased subjects may be back with the vault's backup: %w", err)
				}
				if destroyed > 0 {
					g.say("destroyed %d keys of erased subjects again, which the vault's backup had brought back", destroyed)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "incarnation %d begins at position %d\n", checkpoint.Incarnation, checkpoint.Size)
				return err
			})
		},
	}
}

func adminErase(g *globals) *cobra.Command {
	var sure bool
	c := &cobra.Command{
		Use: "erase account|space ID", Short: "Destroy the key of an account or a space: its data reads as erased everywhere, for ever", Args: exactly(2),
		Long: "Destroy the key of an account (a person's e-mail and name) or of a space (all its content). Every sealed field\n" +
			"reads as erased in the log, its replicas and its backups; hashes and receipts stay valid. Then the bytes that\n" +
			"PostgreSQL keeps beside its rows are scrubbed. There is no way back. See docs/operations/rebuild.md.",
		Example: "  cairn admin erase space 0192f0c1-7a1e-7000-8000-000000000001 --yes",
		PreRunE: func(*cobra.Command, []string) error { return g.allowOutput("text") },
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := event.ParseID(args[1])
			if err != nil {
				return usage(err)
			}
			if args[0] != "account" && args[0] != "space" {
				return usage(fmt.Errorf("erase %q: want account or space", args[0]))
			}
			if !sure {
				return usage(fmt.Errorf("this destroys the data of %s %s for ever: say --yes if that is meant", args[0], id))
			}
			return g.withOwner(cmd.Context(), false, func(ctx context.Context, in *installation) error {
				return g.erase(ctx, in, args[0], id, cmd.OutOrStdout())
			})
		},
	}
	c.Flags().BoolVar(&sure, "yes", false, "this is meant")
	return c
}

func (g *globals) erase(ctx context.Context, in *installation, kind string, id event.ID, out io.Writer) error {
	d, err := in.open(ctx, in.serverURL, "cairn admin", g.logger())
	if err != nil {
		return err
	}
	err = eraseSubject(ctx, d, kind, id)
	d.Close()
	if err != nil {
		return err
	}
	report, err := audit.Scrub(ctx, in.direct())
	if err != nil {
		return fmt.Errorf("the key is destroyed, but the scrub failed: %w", err)
	}
	if g.output == "json" {
		return json.NewEncoder(out).Encode(report)
	}
	fmt.Fprintf(out, "%s %s is erased\n", kind, id)
	for _, step := range report.Steps {
		if step.Done {
			g.say("scrubbed %s: %s", step.Name, step.Detail)
		} else {
			fmt.Fprintf(out, "not scrubbed: %s: %s\n  to do by hand: %s\n", step.Name, step.Detail, step.Fix)
		}
	}
	if !report.Clean() {
		return withCode(exitFailure, errors.New("the key is destroyed; some bytes beside the rows have to be scrubbed by hand"))
	}
	return nil
}

func eraseSubject(ctx context.Context, d *db.DB, kind string, id event.ID) error {
	command, err := eraseCommand(ctx, d, kind, id)
	if err != nil {
		return err
	}
	_, err = d.Execute(ctx, command, event.Meta{Actor: event.System, At: db.Now()})
	return err
}

// eraseCommand reads the claim that is released with the subject.
func eraseCommand(ctx context.Context, d *db.DB, kind string, id event.ID) (event.Command, error) {
	if kind == "account" {
		state, _, err := d.Load(ctx, account.Stream(id))
		if err != nil {
			return nil, err
		}
		return account.Erase{Account: id, Claim: state.(account.State).Claim}, nil
	}
	state, _, err := d.Load(ctx, space.Stream(id))
	if err != nil {
		return nil, err
	}
	return space.Erase{Space: id, Claim: state.(space.State).Claim}, nil
}
