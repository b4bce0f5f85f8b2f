package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"cairn/server/proxy"
)

type upFlags struct {
	serverFlags
	workerFlags
	replicas int
}

// maxReplicas bounds the servers of one tree: each has a port of its own and connections to one database.
const maxReplicas = 16

func upCommand(g *globals) *cobra.Command {
	f := &upFlags{}
	c := &cobra.Command{
		Use:   "up",
		Short: "Run everything in one process tree on an embedded PostgreSQL",
		Long: "Run everything in one process tree: an embedded PostgreSQL in the data folder (or the one that is named),\n" +
			"its migrations, servers and a worker, each its own process. A process that dies is started again. With\n" +
			"--replicas N there are N servers on one log, on the port of --listen and the next ones: put a load balancer\n" +
			"in front, or use any of them. Ctrl-C drains and stops all of them; a second Ctrl-C kills what is left. While nobody can sign in yet it prints a\n" +
			"single-use code for the first account, good for an hour.",
		Example: "  cairn up\n  cairn up --data /srv/cairn --listen 127.0.0.1:9000 --replicas 2 --slots 4",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return g.up(ctx, stop, f)
		},
	}
	f.serverFlags.register(c)
	f.workerFlags.register(c)
	c.Flags().IntVar(&f.replicas, "replicas", 1, "number of server processes; replica I answers on the port of --listen plus I")
	return c
}

// up starts what is needed, keeps it alive, and takes it down in the opposite order.
func (g *globals) up(ctx context.Context, interrupted func(), f *upFlags) error {
	began := time.Now()
	addresses, err := f.addresses()
	if err != nil {
		return usage(err)
	}
	if _, err := parseGrade(f.grade); err != nil {
		return err
	}
	if _, err := parseRoots(f.roots); err != nil {
		return usage(err)
	}
	if _, err := proxy.Parse(f.proxies); err != nil {
		return usage(fmt.Errorf("--trusted-proxy: %w", err))
	}
	in, err := g.openInstallation(ctx, true)
	if err != nil {
		return err
	}
	defer in.close(g)
	lock, err := lockUp(in.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := in.migrate(ctx, g); err != nil {
		return err
	}
	if err := portsFree(addresses); err != nil {
		return err
	}
	first, err := g.firstLogin(ctx, in)
	if err != nil {
		return err
	}
	family := g.startFamily(ctx, in, f, addresses)
	if err := family.ready(ctx, addresses); err == nil {
		g.say("Portal: http://%s", addresses[0])
		for _, address := range addresses {
			g.say("Server: http://%s  (docs, api/v1, healthz, readyz, gateway/v1; ready after %v)", address, time.Since(began).Round(time.Millisecond))
		}
		if first != nil {
			g.say("Login: %s %s", first.Email, first.Code)
		}
		g.say("Try:    cairn run --data %s '$ uname -a'", in.dir)
		g.say("Ctrl-C stops everything.")
	}
	<-family.done
	interrupted() // a second Ctrl-C ends this process at once, and its children by the death signal
	return family.stop(g)
}

// childEnv passes the addresses of the database outside the arguments, which everybody can read.
func childEnv(url, direct string) []string {
	env := os.Environ()
	kept := env[:0:0]
	for _, e := range env {
		if !strings.HasPrefix(e, "CAIRN_DATABASE_URL=") && !strings.HasPrefix(e, "CAIRN_LISTEN=") && !strings.HasPrefix(e, "CAIRN_DATA=") {
			kept = append(kept, e)
		}
	}
	kept = append(kept, "CAIRN_DATABASE_URL="+url)
	if direct != "" {
		kept = append(kept, "CAIRN_DATABASE_DIRECT_URL="+direct)
	}
	return kept
}

// lockUp keeps two trees off one data folder.
func lockUp(dir string) (*os.File, error) {
	path := filepath.Join(dir, "up.lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unavailable(err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path)
		file.Close()
		return nil, withCode(exitConflict, fmt.Errorf("'cairn up' already runs on %s (process %s): stop it first, or use another --data", dir, strings.TrimSpace(string(holder))))
	}
	if err := file.Truncate(0); err != nil {
		return nil, unavailable(err)
	}
	if _, err := fmt.Fprintf(file, "%d\n", os.Getpid()); err != nil {
		return nil, unavailable(err)
	}
	return file, nil
}

// addresses are where the replicas answer.
func (f *upFlags) addresses() ([]string, error) {
	if f.replicas < 1 || f.replicas > maxReplicas {
		return nil, fmt.Errorf("--replicas %d: use 1 to %d", f.replicas, maxReplicas)
	}
	host, text, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port+f.replicas-1 > 65535 {
		return nil, fmt.Errorf("--listen %s: want a port from 1 to %d", f.listen, 65536-f.replicas)
	}
	var all []string
	for i := range f.replicas {
		all = append(all, net.JoinHostPort(host, strconv.Itoa(port+i)))
	}
	return all, nil
}

// portsFree finds out before anything is started that an address cannot be had.
func portsFree(addresses []string) error {
	for _, address := range addresses {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return usage(fmt.Errorf("--listen: %w: stop what answers there, or choose another address", err))
		}
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return nil
}
