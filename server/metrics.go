package server

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// serveMetrics answers /metrics on the listener of its own, if there is one, until ctx ends: also while the server
// drains. Its end ends nothing else.
func (s *Server) serveMetrics(ctx context.Context) {
	if s.options.Metrics == nil {
		return
	}
	own := &http.Server{Handler: s.meter.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: s.http.ErrorLog}
	stop := context.AfterFunc(ctx, func() { own.Close() })
	defer stop()
	if err := own.Serve(s.options.Metrics); !errors.Is(err, http.ErrServerClosed) {
		s.options.Log.ErrorContext(ctx, "metrics are not served any more", "address", s.options.Metrics.Addr().String(), "error", err)
	}
}
