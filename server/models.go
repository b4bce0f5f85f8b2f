package server

import (
	"context"
	"fmt"
	"net"
	"time"

	"cairn/db"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/server/gateway"
)

// newGateway makes the model gateway; count sees every call at its end.
func newGateway(o Options, count func(gateway.Call)) (*gateway.Gateway, error) {
	fence := func(ctx context.Context, id string, epoch int64) error { return stillRunning(ctx, o.DB, id, epoch) }
	g, err := gateway.New(gateway.Config{
		Authorize: gateway.RunTokens{Key: o.DB.Keys().RunTokenKey(), StillRunning: fence, Now: time.Now},
		Models:    o.Models, Log: o.Log, DemoPause: o.DemoPause,
		Observe: func(ctx context.Context, c gateway.Call) {
			count(c)
			o.Log.InfoContext(ctx, "model call", "run", c.Run.ID, "model", c.Model, "upstream", c.Upstream, "outcome", c.Outcome,
				"duration", c.Duration, "input_tokens", c.InputTokens, "output_tokens", c.OutputTokens)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("model gateway: %w", err)
	}
	return g, nil
}

// ServeModels answers on the listener with the model gateway alone, until ctx ends: what a process needs that
// executes one run of its own. REST and sockets belong to a Server.
func ServeModels(ctx context.Context, o Options, listener net.Listener) error {
	g, err := newGateway(o, func(gateway.Call) {})
	if err != nil {
		return err
	}
	defer g.Close()
	h := newHTTP(g, o.Log)
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	return shutdown(drain, h)
}

// stillRunning fences the tokens of runs that ended or moved to another worker.
func stillRunning(ctx context.Context, d *db.DB, id string, epoch int64) error {
	parsed, err := event.ParseID(id)
	if err != nil {
		return fmt.Errorf("%w: %w", gateway.ErrFenced, err)
	}
	row, err := d.Read().RunByID(ctx, parsed)
	if db.IsNotFound(err) {
		return fmt.Errorf("%w: there is no such run", gateway.ErrFenced)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	if row.Epoch != epoch || !run.Status(row.State).Claimed() {
		return fmt.Errorf("%w: it is %s at epoch %d", gateway.ErrFenced, row.State, row.Epoch)
	}
	return nil
}
