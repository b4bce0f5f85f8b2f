package db

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	// bellPoll bounds the delay of a reader when no bell rings at all.
	bellPoll = 250 * time.Millisecond
	// probeEvery is how often the bell checks by a notification to itself that LISTEN works.
	probeEvery = 5 * time.Second
)

// bell turns the log's notification into wake-ups of this process's readers. It only ever hints: losing,
// repeating or delaying rings changes latency, never what is read.
//
//	connecting --LISTEN--> listening --connection lost--> connecting
//
// The connection is direct, never through a transaction pooler.
type bell struct {
	url string
	log *slog.Logger

	mu       sync.Mutex
	waiters  map[chan struct{}]struct{}
	connects atomic.Int64 // how often LISTEN was set up
	heard    atomic.Int64 // unix nanoseconds of the last answered probe; 0 while LISTEN is not known to work
}

func newBell(url string, log *slog.Logger) *bell {
	return &bell{url: url, log: log, waiters: map[chan struct{}]struct{}{}}
}

// subscribe returns a channel that is filled on every ring, and a function that ends it.
func (b *bell) subscribe() (<-chan struct{}, func()) {
	wake := make(chan struct{}, 1)
	b.mu.Lock()
	b.waiters[wake] = struct{}{}
	b.mu.Unlock()
	return wake, func() {
		b.mu.Lock()
		delete(b.waiters, wake)
		b.mu.Unlock()
	}
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for wake := range b.waiters {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// alive reports whether a probe was answered lately.
func (b *bell) alive() bool {
	heard := b.heard.Load()
	return heard != 0 && time.Since(time.Unix(0, heard)) < 3*probeEvery
}

func (b *bell) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := b.listen(ctx)
		b.heard.Store(0)
		if ctx.Err() != nil {
			return
		}
		b.log.Warn("LISTEN is down, polling instead", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(bellPoll):
		}
	}
}

func (b *bell) listen(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(closing)
	}()
	probe := "cairn_probe_" + uuid.New().String()[:8]
	if _, err := conn.Exec(ctx, fmt.Sprintf("LISTEN cairn_position; LISTEN %s", probe)); err != nil {
		return err
	}
	b.connects.Add(1)
	b.ring() // what happened while nobody listened
	asked := false
	for {
		if !asked {
			if _, err := conn.Exec(ctx, "NOTIFY "+probe); err != nil {
				return err
			}
			asked = true
		}
		wait, cancel := context.WithTimeout(ctx, probeEvery)
		n, err := conn.WaitForNotification(wait)
		cancel()
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil && wait.Err() != nil && !conn.IsClosed():
			if !asked {
				continue
			}
			asked = false
		case err != nil:
			return err
		case n.Channel == probe:
			b.heard.Store(time.Now().UnixNano())
		default:
			b.ring()
		}
		if heard := b.heard.Load(); heard != 0 && time.Since(time.Unix(0, heard)) >= probeEvery {
			asked = false
		}
	}
}
