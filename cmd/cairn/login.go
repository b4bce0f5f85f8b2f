package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"cairn/db"
	"cairn/domain/account"
	"cairn/domain/claim"
	"cairn/domain/event"
	"cairn/server/auth"
	"cairn/server/gateway"
)

// login is a way in: the file of the first one, and what 'admin login' prints with --output json.
type login struct {
	Email     string    `json:"email"`
	Code      string    `json:"code"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (in *installation) firstLoginFile() string { return filepath.Join(in.dir, "first-login.json") }

// firstLogin makes the first account with its space and agent, and a code for it while it has no way in. It
// answers nil when the account can sign in, or could already.
func (g *globals) firstLogin(ctx context.Context, in *installation) (*login, error) {
	d, err := in.open(ctx, in.serverURL, "cairn up", quietLogger(g))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	l, err := ensureLocal(ctx, d, gateway.DemoModel)
	if err != nil {
		return nil, err
	}
	known, err := d.CanSignIn(ctx, l.account)
	if err != nil || known {
		return nil, err
	}
	if row, err := d.Read().AccountByID(ctx, l.account); err != nil || row.Disabled {
		return nil, err
	}
	first, err := newLogin(ctx, d, l.account, localEmail)
	if err != nil {
		return nil, err
	}
	return first, writeFirstLogin(in.firstLoginFile(), first)
}

func newLogin(ctx context.Context, d *db.DB, id event.ID, email string) (*login, error) {
	expires := time.Now().UTC().Add(auth.CodeLife).Truncate(time.Second)
	code, err := auth.NewCode(ctx, d, id)
	if err != nil {
		return nil, err
	}
	return &login{Email: email, Code: code, ExpiresAt: expires}, nil
}

// writeFirstLogin replaces the file, so that nobody but its owner ever sees a code in it.
func writeFirstLogin(path string, first *login) error {
	raw, err := json.Marshal(first)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".first-login-*") // made with 0600
	if err != nil {
		return unavailable(fmt.Errorf("first login: %w", err))
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(append(raw, '\n'))
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return unavailable(fmt.Errorf("first login: %w", err))
	}
	return nil
}

func adminLogin(g *globals) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use: "login EMAIL", Short: "Print a code with which a person signs in, once within an hour", Args: exactly(1),
		Long: "Print a single-use code for the account with this e-mail address. With --name the account is opened when\n" +
			"there is none. A session that is opened with a code may replace a forgotten password within an hour.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withOwner(cmd.Context(), false, func(ctx context.Context, in *installation) error {
				d, err := in.open(ctx, in.serverURL, "cairn admin login", quietLogger(g))
				if err != nil {
					return err
				}
				defer d.Close()
				email := auth.NormalEmail(args[0])
				id, err := accountWith(ctx, d, email, name)
				if err != nil {
					return err
				}
				if err := requireEnabled(ctx, d, id, email); err != nil {
					return err
				}
				made, err := newLogin(ctx, d, id, email)
				if err != nil {
					return err
				}
				if g.output == "json" {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(made)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Login: %s %s\n", made.Email, made.Code)
				return err
			})
		},
	}
	c.Flags().StringVar(&name, "name", "", "open the account under this `NAME` when there is none")
	return c
}

// accountWith finds the account that holds an address, or opens one when there is a name for it.
func accountWith(ctx context.Context, d *db.DB, email, name string) (event.ID, error) {
	mac := d.Keys().ClaimMAC("email", email)
	row, err := d.Read().ClaimByID(ctx, claim.Stream(mac).ID)
	switch {
	case err == nil && row.OwnerID != nil:
		return *row.OwnerID, nil
	case err != nil && !db.IsNotFound(err):
		return event.ID{}, unavailable(err)
	case name == "":
		return event.ID{}, usage(fmt.Errorf("no account has the address %s: give --name to open one", email))
	}
	id := newID()
	_, err = d.Execute(ctx, account.Open{Account: id, AccountKind: account.Person, Email: email, DisplayName: name, EmailMAC: mac}, event.Meta{Actor: event.System, At: db.Now()})
	return id, err
}
