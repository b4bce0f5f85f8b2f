package db

import (
	"context"
	"io/fs"
	"log/slog"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
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
