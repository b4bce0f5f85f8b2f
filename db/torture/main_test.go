package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"cairn/db"
)

// child is what a process of the torture is told.
type child struct {
	Plan    Plan
	URL     string
	KeyDir  string
	BlobDir string
}

const (
	childEnv   = "CAIRN_TORTURE_CHILD"
	migrateEnv = "CAIRN_TORTURE_MIGRATE"
)

// TestMain is also the main of every process that strikes.
func TestMain(m *testing.M) {
	if url := os.Getenv(migrateEnv); url != "" {
		migrateOnce(url)
		return
	}
	text := os.Getenv(childEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := strikeOn(text); err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

// migrateOnce says how many steps this process applied.
func migrateOnce(url string) {
	applied, err := db.Migrate(context.Background(), url)
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(len(applied))
}

// strikeOn writes until SIGTERM. Warnings of the log's own machinery go to stderr, where the parent counts them.
func strikeOn(text string) error {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	keys, err := db.LoadKeyring(c.KeyDir, false)
	if err != nil {
		return err
	}
	blobs, err := db.OpenBlobStore(c.BlobDir)
	if err != nil {
		return err
	}
	o := db.Options{
		URL: c.URL, Name: c.Plan.Process, Keys: keys, Blobs: blobs, MaxConns: 8,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	Use(&o)
	d, err := db.Open(ctx, o)
	if ctx.Err() != nil {
		return nil // asked to end before it began
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return Write(ctx, d, c.Plan, NewAcks(os.Stdout))
}
