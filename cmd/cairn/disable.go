package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"cairn/db"
	"cairn/domain/account"
	"cairn/domain/event"
	"cairn/server/auth"
)

func adminDisable(g *globals) *cobra.Command {
	c := g.accountSwitch("disable", true, func(id event.ID) event.Command { return account.Disable{Account: id} })
	c.Short = "Keep an account from signing in, and end its sessions at once"
	c.Long = "Keep the account with this e-mail address from signing in. Its sessions and codes end at once, on every server, and\n" +
		"its live sockets are closed within a second. What it owns, its memberships and its password stay."
	return c
}

func adminEnable(g *globals) *cobra.Command {
	c := g.accountSwitch("enable", false, func(id event.ID) event.Command { return account.Enable{Account: id} })
	c.Short = "Let a disabled account sign in again"
	c.Long = "Let the account with this e-mail address sign in again, with its password or with a code of 'cairn admin login'."
	return c
}

func (g *globals) accountSwitch(verb string, disabled bool, command func(event.ID) event.Command) *cobra.Command {
	return &cobra.Command{
		Use: verb + " EMAIL", Args: exactly(1), Example: "  cairn admin " + verb + " ann@example.org",
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withOwner(cmd.Context(), false, func(ctx context.Context, in *installation) error {
				d, err := in.open(ctx, in.serverURL, "cairn admin "+verb, quietLogger(g))
				if err != nil {
					return err
				}
				defer d.Close()
				email := auth.NormalEmail(args[0])
				id, err := accountWith(ctx, d, email, "")
				if err != nil {
					return err
				}
				if _, err := d.Execute(ctx, command(id), event.Meta{Actor: event.System, At: db.Now()}); err != nil {
					return err
				}
				if g.output == "json" {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"email": email, "account_id": id, "disabled": disabled})
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is %sd\n", email, verb)
				return err
			})
		},
	}
}

// requireEnabled keeps codes from being made that nobody can sign in with.
func requireEnabled(ctx context.Context, d *db.DB, id event.ID, email string) error {
	row, err := d.Read().AccountByID(ctx, id)
	if err != nil {
		return unavailable(err)
	}
	if row.Disabled {
		return withCode(exitConflict, fmt.Errorf("the account %s is disabled: enable it first with 'cairn admin enable %s'", email, email))
	}
	return nil
}
