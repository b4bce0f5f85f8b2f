package server

import (
	"context"
	"time"
)

const (
	// answersKept is how long the answer of an idempotent command is known.
	answersKept = 30 * 24 * time.Hour
	forgetEvery = time.Hour
)

// keepHouse forgets what is past its time, until ctx ends. Every server does it; a second one finds nothing.
func (s *Server) keepHouse(ctx context.Context) {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		n, err := s.options.DB.ForgetAnswers(ctx, time.Now().Add(-answersKept))
		switch {
		case err != nil && ctx.Err() == nil:
			s.options.Log.WarnContext(ctx, "old idempotency answers stay", "error", err)
		case n > 0:
			s.options.Log.InfoContext(ctx, "forgot old idempotency answers", "count", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
