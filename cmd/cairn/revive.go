package main

import (
	"context"
	"fmt"
	"time"
)

// reviveEvery is how often 'cairn up' looks whether its PostgreSQL still runs.
const reviveEvery = 250 * time.Millisecond

// keepCluster starts the embedded PostgreSQL again when it was killed, until ctx ends: the server and the
// worker go on waiting for it, and nobody else would.
//
//	running --killed--> gone --Revive, recovery--> running
func (in *installation) keepCluster(ctx context.Context, g *globals) {
	tick := time.NewTicker(reviveEvery)
	defer tick.Stop()
	healthy := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if in.cluster == nil || in.cluster.Pid() != 0 {
			continue
		}
		g.say("PostgreSQL ended, starting it again")
		err := in.revive(ctx)
		if err != nil && healthy && ctx.Err() == nil {
			g.say("%v; trying again", err)
		}
		healthy = err == nil
	}
}

// revive returns when the embedded PostgreSQL answers, if there is one. A child that were started sooner would
// only end again.
func (in *installation) revive(ctx context.Context) error {
	if in.cluster == nil {
		return nil
	}
	if err := in.cluster.Revive(ctx); err != nil {
		return fmt.Errorf("PostgreSQL cannot be started again: %w", err)
	}
	return nil
}
