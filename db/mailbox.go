package db

import (
	"context"
	"sync"

	"cairn/db/internal/logq"
	"cairn/domain/event"
)

// A mailbox collects the commands for one stream in this process and hands all that queued while the last
// append was under way to one worker, which decides them in order and appends them together. Without it,
// concurrent writers of one stream would spend their time in conflicts.
//
//	idle --post--> working --queue empty--> idle
//	                  \--more queued--> working

// maxBatch bounds the commands of one append; a larger backlog becomes several.
const maxBatch = 64

type request struct {
	ctx     context.Context
	command event.Command
	meta    event.Meta
	streams []event.Ref
	mac     []byte
	alone   bool // an append that held it among others failed for what it holds
	secrets secrets
	reply   chan reply
}

// secrets queues rows of the vault into the append of a command: what belongs to its events but must never be in one.
type secrets func(ctx context.Context, log *logq.Queries)

type reply struct {
	result Result
	err    error
}

func (r *request) answer(result Result, err error) { r.reply <- reply{result, err} }

type mailboxes struct {
	mu      sync.Mutex
	waiting map[event.ID][]*request // present while a worker is busy with the stream
	busy    sync.WaitGroup
}

func newMailboxes() *mailboxes { return &mailboxes{waiting: map[event.ID][]*request{}} }

func (m *mailboxes) post(d *DB, stream event.ID, r *request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if queued, working := m.waiting[stream]; working {
		m.waiting[stream] = append(queued, r)
		return
	}
	m.waiting[stream] = nil
	m.busy.Go(func() { m.work(d, stream, []*request{r}) })
}

func (m *mailboxes) work(d *DB, stream event.ID, batch []*request) {
	for len(batch) > 0 {
		d.executeBatch(batch)
		batch = m.next(stream)
	}
}

// next takes what queued meanwhile, leaving out callers that have gone; nil ends the worker.
func (m *mailboxes) next(stream event.ID) []*request {
	m.mu.Lock()
	defer m.mu.Unlock()
	queued := m.waiting[stream]
	if len(queued) == 0 {
		delete(m.waiting, stream)
		return nil
	}
	n := min(len(queued), maxBatch)
	m.waiting[stream] = queued[n:]
	return queued[:n:n]
}
