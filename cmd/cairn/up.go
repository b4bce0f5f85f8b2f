package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

type upFlags struct {
	serverFlags
	workerFlags
}

func upCommand(g *globals) *cobra.Command {
	f := &upFlags{}
	c := &cobra.Command{
		Use:   "up",
		Short: "Run everything in one process tree on an embedded PostgreSQL",
		Long: "Run everything in one process tree: an embedded PostgreSQL in the data folder (or the one that is named),\n" +
			"its migrations, a server and a worker, each its own process. A process that dies is started again. Ctrl-C\n" +
			"drains and stops all of them; a second Ctrl-C kills what is left. While nobody can sign in yet it prints a\n" +
			"single-use code for the first account, good for an hour.",
		Example: "  cairn up\n  cairn up --data /srv/cairn --listen 127.0.0.1:9000 --slots 4",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return g.up(ctx, stop, f)
		},
	}
	f.serverFlags.register(c)
	f.workerFlags.register(c)
	return c
}

// up starts what is needed, keeps it alive, and takes it down in the opposite order.
func (g *globals) up(ctx context.Context, interrupted func(), f *upFlags) error {
	began := time.Now()
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
	if err := portFree(f.listen); err != nil {
		return err
	}
	first, err := g.firstLogin(ctx, in)
	if err != nil {
		return err
	}
	family := g.startFamily(ctx, in, f)
	url := "http://" + f.listen
	if err := family.ready(ctx, url+"/readyz"); err == nil {
		g.say("Server: %s  (docs, api/v1, healthz, readyz, gateway/v1; ready after %v)", url, time.Since(began).Round(time.Millisecond))
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

// family is the server and the worker, in the order of their start.
type family struct {
	stopServer, stopWorker context.CancelFunc
	server, worker         chan error
	done                   <-chan struct{} // the caller asked to stop, or a child failed for good
	failed                 error
	once                   sync.Once
}

func (g *globals) startFamily(ctx context.Context, in *installation, f *upFlags) *family {
	over, end := context.WithCancel(ctx)
	fam := &family{server: make(chan error, 1), worker: make(chan error, 1), done: over.Done()}
	// The children are stopped one after the other, not by the same signal at once.
	alive := context.WithoutCancel(ctx)
	var serving, working context.Context
	serving, fam.stopServer = context.WithCancel(alive)
	working, fam.stopWorker = context.WithCancel(alive)
	go in.keepCluster(over, g)
	start := func(ctx context.Context, c *child, ended chan error) {
		c.say = g.say
		c.before = in.revive
		go func() {
			err := c.run(ctx)
			if ctx.Err() == nil {
				fam.once.Do(func() { fam.failed = err })
				end()
			}
			ended <- err
		}()
	}
	common := []string{"--data", in.dir}
	if g.quiet {
		common = append(common, "--quiet")
	}
	server := append([]string{"server", "--listen", f.listen}, common...)
	if f.models != "" {
		server = append(server, "--models", f.models)
	}
	start(serving, &child{name: "server", args: server, env: childEnv(in.serverURL, in.directURL)}, fam.server)
	worker := append([]string{"worker", "--server", "http://" + f.listen}, common...)
	start(working, &child{name: "worker", args: append(worker, f.workerFlags.args()...), env: childEnv(in.workerURL, in.directURL)}, fam.worker)
	return fam
}

// stop drains the worker, which needs the server, then the server.
func (f *family) stop(g *globals) error {
	g.say("draining; Ctrl-C again ends at once")
	f.stopWorker()
	worker := <-f.worker
	f.stopServer()
	server := <-f.server
	if f.failed != nil {
		return f.failed
	}
	return errors.Join(worker, server)
}

// ready waits until the server answers that it is ready, or the family ends.
func (f *family) ready(ctx context.Context, url string) error {
	client := &http.Client{Timeout: 2 * time.Second}
	for {
		if response, err := client.Get(url); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-f.done:
			return errors.New("stopped before it was ready")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
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

// portFree finds out before anything is started that the address cannot be had.
func portFree(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return usage(fmt.Errorf("--listen: %w: stop what answers there, or choose another address", err))
	}
	return listener.Close()
}
