package db

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"cairn/db/internal/logq"
	"cairn/db/read"
	"cairn/domain/event"
)

// Lease says which worker works on which run, under which epoch. It only triggers the sweep that takes a
// claim back: who may append is decided by the run's own stream.
//
//	(none) --Renew--> held --Renew--> held --not renewed for a ttl--> expired --sweep--> (none)
//	                   +--Drop--> (none)
type Lease struct {
	Run, Space event.ID
	Topic      event.ID // of the run: its conversation or its task
	Epoch      int64
	Worker     string
}

// Leases renews over a connection of its own, so that a busy pool cannot cost a worker its runs. It is safe
// for concurrent use; Close ends it.
type Leases struct {
	config *pgx.ConnConfig
	mu     sync.Mutex
	conn   *pgx.Conn
}

// Leases makes the connection at its first use, and again when it was lost.
func (d *DB) Leases() *Leases { return &Leases{config: d.pool.Config().ConnConfig.Copy()} }

// Renew takes the leases, or renews them, for ttl by the database's clock. It answers the runs that a later
// epoch holds: their claims are over.
func (l *Leases) Renew(ctx context.Context, ttl time.Duration, leases ...Lease) (lost []event.ID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil || l.conn.IsClosed() {
		if l.conn, err = pgx.ConnectConfig(ctx, l.config); err != nil {
			return nil, fmt.Errorf("leases: connect: %w", err)
		}
	}
	q := logq.New(l.conn)
	for _, lease := range leases {
		_, err := q.LeaseRenew(ctx, logq.LeaseRenewParams{
			RunID: lease.Run, SpaceID: lease.Space, ConversationID: lease.Topic, Epoch: lease.Epoch,
			Worker: lease.Worker, TtlSeconds: ttl.Seconds(),
		})
		if errors.Is(err, pgx.ErrNoRows) {
			lost = append(lost, lease.Run)
			continue
		}
		if err != nil {
			return lost, fmt.Errorf("lease of run %s: %w", lease.Run, err)
		}
	}
	return lost, nil
}

// Close disconnects.
func (l *Leases) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return nil
	}
	return l.conn.Close(ctx)
}

// DropLease forgets the lease of one epoch; that of a later one stays.
func (d *DB) DropLease(ctx context.Context, lease Lease) error {
	if err := d.log.LeaseDrop(ctx, logq.LeaseDropParams{RunID: lease.Run, Epoch: lease.Epoch}); err != nil {
		return fmt.Errorf("drop the lease of run %s: %w", lease.Run, err)
	}
	return nil
}

// ExpiredLeases lists leases that ran out, the oldest first.
func (d *DB) ExpiredLeases(ctx context.Context, limit int) ([]Lease, error) {
	rows, err := d.log.LeaseExpired(ctx, int32(limit))
	if err != nil {
		return nil, fmt.Errorf("expired leases: %w", err)
	}
	leases := make([]Lease, len(rows))
	for i, row := range rows {
		leases[i] = Lease{Run: row.RunID, Space: row.SpaceID, Topic: row.ConversationID, Epoch: row.Epoch, Worker: row.Worker}
	}
	return leases, nil
}

// UnleasedClaims lists runs that a worker claimed but that have no lease. A claim is younger than its lease
// by a moment, so that only one which is found twice was left behind.
func (d *DB) UnleasedClaims(ctx context.Context, limit int) ([]Lease, error) {
	now := time.Now()
	rows, err := d.Read().RunActiveAbandoned(ctx, read.RunActiveAbandonedParams{Before: &now, Lim: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("claims without a lease: %w", err)
	}
	leases := make([]Lease, len(rows))
	for i, row := range rows {
		leases[i] = Lease{Run: row.ID, Space: row.SpaceID, Topic: row.TopicID, Epoch: row.Epoch, Worker: row.Worker}
	}
	return leases, nil
}
