package db

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"cairn/domain/event"
	"cairn/domain/fault"
)

// Result is the answer to a command.
type Result struct {
	// Answer is the command's Answer as JSON; for a repeated idempotent command it is the first one.
	Answer json.RawMessage
	// Records are the events that the command appended; empty when it was a repetition or already fulfilled.
	Records []event.Record
	// Repeated tells that the same key and request were executed before.
	Repeated bool
}

// Execute is the one path of every write:
//
//	idempotency -> states -> Decide (pure) -> append -> answer
//
// It decides before any transaction begins, on states that the append then checks by version; when another
// writer was first it loads and decides again. Refusals are *fault.Fault and leave nothing behind.
func (d *DB) Execute(ctx context.Context, command event.Command, meta event.Meta) (Result, error) {
	return d.executeWith(ctx, command, meta, nil)
}

func (d *DB) executeWith(ctx context.Context, command event.Command, meta event.Meta, beside secrets) (Result, error) {
	if err := validMeta(&meta); err != nil {
		return Result{}, err
	}
	streams := command.Streams()
	if len(streams) == 0 {
		return Result{}, fmt.Errorf("command %s names no stream", command.Name())
	}
	r := &request{ctx: ctx, command: command, meta: meta, streams: streams, secrets: beside, reply: make(chan reply, 1)}
	if meta.Key != "" {
		if err := d.fingerprint(r); err != nil {
			return Result{}, err
		}
	}
	d.mailboxes.post(d, streams[0].ID, r)
	select {
	case answer := <-r.reply:
		return answer.result, answer.err
	case <-ctx.Done():
		return Result{}, fmt.Errorf("command %s: outcome unknown, ask again with the same idempotency key: %w", command.Name(), ctx.Err())
	}
}

// DryRun decides without appending and answers what would be appended.
func (d *DB) DryRun(ctx context.Context, command event.Command, meta event.Meta) ([]event.Change, error) {
	if err := validMeta(&meta); err != nil {
		return nil, err
	}
	v, err := d.view(ctx, command.Streams())
	if err != nil {
		return nil, err
	}
	return command.Decide(v, meta)
}

// ForgetAnswers drops the answers of idempotent commands from before a time: their keys are as good as new
// then. It answers how many there were. Only the server's role may.
func (d *DB) ForgetAnswers(ctx context.Context, before time.Time) (int64, error) {
	n, err := d.log.CommandForget(ctx, before)
	if err != nil {
		return 0, fmt.Errorf("forget answers: %w", err)
	}
	return n, nil
}

// maxKey bounds an idempotency key, in bytes.
const maxKey = 255

func validMeta(meta *event.Meta) error {
	if meta.Actor == "" {
		return fmt.Errorf("command without an actor")
	}
	if len(meta.Key) > maxKey {
		return fault.Field("idempotency_key", "%d bytes, at most %d are allowed", len(meta.Key), maxKey)
	}
	if meta.At.IsZero() {
		return fmt.Errorf("command without a time")
	}
	meta.At = meta.At.UTC().Truncate(time.Microsecond)
	if meta.CommandID.IsZero() {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("command id: %w", err)
		}
		meta.CommandID = event.ID(id)
	}
	return nil
}

// fingerprint computes what tells the same request from another under one key. It is keyed, so that the
// stored value gives nothing away about a short request.
func (d *DB) fingerprint(r *request) error {
	body := r.meta.Request
	if body == nil {
		var err error
		if body, err = json.Marshal(r.command); err != nil {
			return fmt.Errorf("command %s: %w", r.command.Name(), err)
		}
	}
	r.mac = d.keys.MAC("request", append([]byte(r.command.Name()+"\x00"), body...))
	return nil
}
