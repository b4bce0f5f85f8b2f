package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"cairn/db/audit"
	"cairn/server"
	"cairn/server/gateway"
	"cairn/server/proxy"
)

type serverFlags struct {
	listen  string
	models  string
	metrics string // of 'cairn server' alone
	offered []string
	proxies []string
}

func serverCommand(g *globals) *cobra.Command {
	f := &serverFlags{}
	c := &cobra.Command{
		Use:   "server",
		Short: "Run one server process: the REST interface, health, and the model gateway",
		Long: "Run one server process on a database that 'cairn migrate up' has prepared. It answers REST under /api/v1\n" +
			"(described at /docs), /healthz, /readyz and /metrics, serves models to runs under /gateway/v1, and signs checkpoints of\n" +
			"the log. Any number of them may run on one database. SIGTERM drains: requests under way are answered first.",
		Example: "  cairn server --database-url postgres://cairn_server@db/cairn --data /srv/cairn --listen 127.0.0.1:8080",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return g.serve(ctx, f)
		},
	}
	f.register(c)
	c.Flags().StringVar(&f.metrics, "metrics-listen", "", "`ADDRESS` to answer /metrics on, to anybody who reaches it; default: on --listen, to this machine only")
	c.Flags().StringArrayVar(&f.offered, "root", nil, "say that workers offer the folder `NAME` as a source (repeatable); NAME=DIR is taken too, and DIR is not looked at")
	return c
}

func (f *serverFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8080", "`ADDRESS` to answer on")
	c.Flags().StringArrayVar(&f.proxies, "trusted-proxy", nil, "believe X-Forwarded-For and X-Forwarded-Proto of proxies in the network `CIDR` (repeatable); default: of nobody")
	c.Flags().StringVar(&f.models, "models", "", "models `FILE`; default: models.json in the data folder, if there is one")
}

func (g *globals) serve(ctx context.Context, f *serverFlags) error {
	log := g.logger().With("process", "server")
	in, err := g.openInstallation(ctx, false)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer in.close(g)
	d, err := in.open(ctx, in.serverURL, "cairn server", log)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer d.Close()
	models, err := g.loadModels(f.models)
	if err != nil {
		return err
	}
	roots, err := rootNames(f.offered)
	if err != nil {
		return usage(err)
	}
	proxies, err := proxy.Parse(f.proxies)
	if err != nil {
		return usage(fmt.Errorf("--trusted-proxy: %w", err))
	}
	o := server.Options{DB: d, Models: models, Roots: roots, Proxies: proxies, DemoPause: gateway.DefaultDemoPause, Version: version, Log: log}
	if f.metrics != "" {
		if o.Metrics, err = net.Listen("tcp", f.metrics); err != nil {
			return usage(fmt.Errorf("--metrics-listen: %w", err))
		}
		defer o.Metrics.Close()
	}
	s, err := server.New(ctx, o)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return usage(fmt.Errorf("--listen: %w", err))
	}
	log.Info("serving", "address", "http://"+listener.Addr().String())
	var signing sync.WaitGroup
	defer signing.Wait()
	signing.Go(func() { audit.NewCheckpointer(d, in.checkpointFile(), log).Run(ctx) })
	return s.Serve(ctx, listener)
}

// loadModels reads the models file; none at the default place means the demo model alone.
func (g *globals) loadModels(path string) ([]gateway.Model, error) {
	if path == "" {
		path = filepath.Join(g.data, "models.json")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	models, err := gateway.LoadModels(path, os.LookupEnv)
	if err != nil {
		return nil, usage(err)
	}
	return models, nil
}
