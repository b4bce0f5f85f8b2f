package db

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/chacha20poly1305"

	"cairn/domain/event"
)

// Sequencer opens the sequencer to tests.
type Sequencer struct{ *sequencer }

// NewSequencer makes one that is not running by itself.
func NewSequencer(url string) (Sequencer, error) {
	config, err := pgx.ParseConfig(url)
	return Sequencer{newSequencer(config, slog.Default(), nil)}, err
}

// Sequence places what is visible and tries to move the low cursor.
func (s Sequencer) Sequence(ctx context.Context) error { return s.sequence(ctx) }

// Low is the low cursor.
func (s Sequencer) Low() int64 { return s.low }

// PID is the server process of the connection.
func (s Sequencer) PID() uint32 { return s.conn.PgConn().PID() }

// Hurry lets the low cursor be tried at the next call.
func (s Sequencer) Hurry() { s.tried = s.tried.Add(-lowEvery) }

// Disconnect ends the connection.
func (s Sequencer) Disconnect() { s.disconnect() }

// WithMigration adds one to the log's own, and shortens the waiting for locks; the function takes both back.
func WithMigration(name, text string, timeout time.Duration) (undo func()) {
	source, wait, pause := sources["log"], lockTimeout, lockPause
	files := fstest.MapFS{"log/" + name: {Data: []byte(text)}}
	entries, _ := fs.ReadDir(source, "log")
	for _, entry := range entries {
		data, _ := fs.ReadFile(source, "log/"+entry.Name())
		files["log/"+entry.Name()] = &fstest.MapFile{Data: data}
	}
	sources["log"], lockTimeout, lockPause = files, timeout, timeout/5
	return func() { sources["log"], lockTimeout, lockPause = source, wait, pause }
}

// Sealer opens the sealer to fuzzing, with one key that it holds already.
type Sealer struct{ sealer *sealer }

// NewSealer makes one that never asks the vault about the subject.
func NewSealer(keys *Keyring, blobs *BlobStore, subject event.ID) (Sealer, error) {
	s, err := newSealer(keys, nil, blobs)
	if err != nil {
		return Sealer{}, err
	}
	aead, err := chacha20poly1305.NewX(keys.Derive("fuzz"))
	s.keys[subject] = subjectKey{aead: aead, checked: time.Now().Add(24 * time.Hour)}
	return Sealer{s}, err
}

// Seal seals an event of a stream.
func (s Sealer) Seal(stream event.Ref, e event.Event) (event.Event, error) {
	sealed, _, err := s.sealer.seal(context.Background(), stream, false, e)
	return sealed, err
}

// Open opens an event of a stream. Boxes of other subjects than the one that is known are refused here,
// since the vault would have to be asked.
func (s Sealer) Open(stream event.ID, e event.Event) (event.Event, error) {
	_, err := event.MapSealed(e, func(_ string, _ bool, field event.Sealed) (event.Sealed, error) {
		if box, ok := field.Box(); ok {
			if _, known := s.sealer.keys[box.Key]; !known {
				return field, errors.New("unknown subject")
			}
		}
		return field, nil
	})
	if err != nil {
		return nil, err
	}
	return s.sealer.open(context.Background(), stream, e)
}

// Storable is the log's own rule for text.
func Storable(e event.Event) error { return storable(e) }

// StatesWeight is what the cache of folded states believes to hold, in bytes.
func (d *DB) StatesWeight() int64 {
	d.states.mu.Lock()
	defer d.states.mu.Unlock()
	return d.states.weight
}
