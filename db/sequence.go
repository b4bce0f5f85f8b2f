package db

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/db/internal/logq"
)

const (
	sequenceBatch = 1000
	// sequencePoll finds the events of processes that died between commit and sequencing.
	sequencePoll = 250 * time.Millisecond
	// lowEvery is how often the low cursor tries to move.
	lowEvery = 500 * time.Millisecond
)

// sequencer gives positions to committed events: this process's own and everybody else's. There is no
// leader; whoever calls log_sequence places all rows that are visible. A killed or frozen process delays
// nobody.
//
//	waiting --rung or poll--> sequencing --fewer than a full batch--> waiting
//
// The low cursor lets the index scan skip rows that are deleted but not yet vacuumed. It may only pass a
// sequence value once every transaction that could have drawn it has ended; see docs/adr/0001-the-log.md.
//
// It has a connection of its own, so that appends which wait for each other never keep it from placing what
// others committed. A new connection may lead to a restored database: the low cursor starts again at 0.
type sequencer struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn // nil: not connected
	bell   chan struct{}
	log    *slog.Logger
	told   func(events int, took time.Duration) // may be nil

	low       int64
	candidate int64 // sequence values up to here were drawn...
	fence     int64 // ...by transactions up to this id
	tried     time.Time
}

func newSequencer(config *pgx.ConnConfig, log *slog.Logger, told func(int, time.Duration)) *sequencer {
	return &sequencer{config: config, bell: make(chan struct{}, 1), log: log, told: told}
}

// ring asks for sequencing soon. Ringing many times is the same as ringing once.
func (s *sequencer) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

func (s *sequencer) run(ctx context.Context) {
	poll := time.NewTicker(sequencePoll)
	defer poll.Stop()
	healthy := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.bell:
		case <-poll.C:
		}
		err := s.sequence(ctx)
		if err != nil && ctx.Err() == nil && healthy {
			s.log.Warn("events wait for their positions", "error", err)
		}
		healthy = err == nil
	}
}

// sequence places everything that is visible, connecting first where it must.
func (s *sequencer) sequence(ctx context.Context) error {
	if s.conn == nil {
		conn, err := pgx.ConnectConfig(ctx, s.config)
		if err != nil {
			return err
		}
		s.conn, s.low, s.candidate = conn, 0, 0
	}
	err := s.place(ctx, logq.New(s.conn))
	if err == nil && time.Since(s.tried) >= lowEvery {
		s.tried = time.Now()
		err = s.moveLow(ctx, logq.New(s.conn))
	}
	if err != nil {
		s.disconnect()
	}
	return err
}

func (s *sequencer) disconnect() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.conn.Close(ctx); err != nil {
		s.log.Debug("sequencer's connection", "error", err)
	}
	s.conn = nil
}

// place calls until nothing is left. Each call is one statement and one message, so that the lock is never
// held across a round trip.
func (s *sequencer) place(ctx context.Context, q *logq.Queries) error {
	for {
		began := time.Now()
		n, err := q.LogSequence(ctx, logq.LogSequenceParams{Lim: sequenceBatch, Low: s.low})
		if n > 0 && s.told != nil {
			s.told(int(n), time.Since(began))
		}
		if err != nil || n < sequenceBatch {
			return err
		}
	}
}

// moveLow passes the candidate once all transactions that might still insert below it have ended and what
// they committed has been placed; then it takes a new candidate. The value drawn is read before the
// transaction id, in an earlier statement: anyone who drew it has a smaller id.
func (s *sequencer) moveLow(ctx context.Context, q *logq.Queries) error {
	if s.candidate > s.low {
		oldest, err := q.TransactionOldest(ctx)
		if err != nil || oldest <= s.fence {
			return err
		}
		if err := s.place(ctx, q); err != nil {
			return err
		}
		s.low = s.candidate
	}
	drawn, err := q.SequenceDrawn(ctx)
	if err != nil || drawn <= s.low {
		return err
	}
	fence, err := q.TransactionID(ctx)
	if err != nil {
		return err
	}
	s.candidate, s.fence = drawn, fence
	return nil
}
