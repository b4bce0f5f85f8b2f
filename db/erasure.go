package db

import (
	"context"
	"time"

	"cairn/domain/event"
)

const (
	// erasurePoll is how often a process asks whether keys that it used were destroyed elsewhere.
	erasurePoll = 250 * time.Millisecond
	// maxWatched bounds the keys of one question; beyond it everything that they opened is dropped.
	maxWatched = 4096
)

// watchErasures keeps plain text that this process has in memory from outliving its key. The process that
// carries out an erasure forgets at once; all others notice here, since only folded states and the keys in
// use hold anything. When the vault does not answer within keyTrust, the states are dropped as well: what
// cannot be confirmed is not shown.
//
//	keys in use --still there--> keys in use
//	            --destroyed----> key and all folded states forgotten
//	            --no answer----> all folded states forgotten
func (d *DB) watchErasures(ctx context.Context) {
	poll := time.NewTicker(erasurePoll)
	defer poll.Stop()
	healthy := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
		err := d.forgetDestroyed(ctx)
		if err != nil && ctx.Err() == nil {
			d.states.clear()
			if healthy {
				d.slog.Warn("the vault does not answer, folded states are dropped", "error", err)
			}
		}
		healthy = err == nil
	}
}

func (d *DB) forgetDestroyed(ctx context.Context) error {
	subjects := d.sealer.live()
	if len(subjects) == 0 {
		return nil
	}
	if len(subjects) > maxWatched {
		d.sealer.forget(subjects...)
		d.states.clear()
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, keyTrust)
	defer cancel()
	gone, err := d.log.SubjectKeyGone(asking, subjects)
	if err != nil || len(gone) == 0 {
		return err
	}
	d.sealer.forget(gone...)
	d.states.clear()
	return nil
}

// live lists the subjects whose keys this process holds.
func (s *sealer) live() []event.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	subjects := make([]event.ID, 0, len(s.keys))
	for subject, key := range s.keys {
		if key.aead != nil {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

func (s *sealer) forget(subjects ...event.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, subject := range subjects {
		delete(s.keys, subject)
	}
}
