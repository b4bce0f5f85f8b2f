package db

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"cairn/domain/event"
)

// Deltas are words of an answer while the model still speaks. They are no facts: any of them may be lost, and
// run.model_answered says the whole text in the end. They travel as notifications, sealed under the key of
// their space, and are stored nowhere.

const (
	deltaChannel = "cairn_delta"
	// deltaText bounds the text of one notification, in bytes: sealed and in base64 it must stay below 8,000,
	// also when every byte needs an escape.
	deltaText = 900
	// deltaEvery is how often a writer sends what was collected.
	deltaEvery = 30 * time.Millisecond
	// deltaRound is how many notifications it sends at once; more text is dropped.
	deltaRound = 256
)

// Delta is a piece of the text that a model is saying. Seq counts the pieces of one attempt at one step from
// 0: a number that is missing was lost.
type Delta struct {
	Space   event.ID `json:"-"`
	Topic   event.ID `json:"topic"`
	Run     event.ID `json:"run"`
	Epoch   int64    `json:"epoch"`
	Step    int64    `json:"step"`
	Attempt int      `json:"attempt"`
	Seq     int64    `json:"seq"`
	Text    string   `json:"text"`
}

// deltaKey names what the pieces of are counted together.
type deltaKey struct {
	run         event.ID
	epoch, step int64
	attempt     int
}

// DeltaWriter collects deltas and sends them to the servers.
type DeltaWriter struct {
	db   *DB
	in   chan Delta
	next map[event.ID]deltaCount

	mu   sync.Mutex
	lost map[event.ID]struct{} // runs of which a piece was dropped before it had a number
}

type deltaCount struct {
	key  deltaKey
	seq  int64
	used time.Time
}

// NewDeltaWriter makes a writer; Run must be called for it to send.
func (d *DB) NewDeltaWriter() *DeltaWriter {
	return &DeltaWriter{db: d, in: make(chan Delta, 4096), next: map[event.ID]deltaCount{}, lost: map[event.ID]struct{}{}}
}

// Add takes a piece; Seq is given by the writer. It never waits: what does not fit is lost, and a number is left
// out for it.
func (w *DeltaWriter) Add(d Delta) {
	if d.Text == "" {
		return
	}
	select {
	case w.in <- d:
	default:
		w.mu.Lock()
		w.lost[d.Run] = struct{}{}
		w.mu.Unlock()
	}
}

// Run sends until ctx ends.
func (w *DeltaWriter) Run(ctx context.Context) {
	for {
		var round []Delta
		select {
		case <-ctx.Done():
			return
		case d := <-w.in:
			round = append(round, d)
		}
		time.Sleep(deltaEvery)
		for more := true; more && len(round) < cap(w.in); {
			select {
			case d := <-w.in:
				round = append(round, d)
			default:
				more = false
			}
		}
		if err := w.send(ctx, w.number(round)); err != nil && ctx.Err() == nil {
			w.db.slog.Debug("deltas were lost", "error", err)
		}
	}
}

// number joins the pieces of one answer that came together, divides what is too long, and counts.
func (w *DeltaWriter) number(round []Delta) []Delta {
	var joined []Delta
	index := map[deltaKey]int{}
	for _, d := range round {
		key := deltaKey{d.Run, d.Epoch, d.Step, d.Attempt}
		if i, ok := index[key]; ok {
			joined[i].Text += d.Text
			continue
		}
		index[key] = len(joined)
		joined = append(joined, d)
	}
	w.mu.Lock()
	lost := w.lost
	w.lost = map[event.ID]struct{}{}
	w.mu.Unlock()
	now := time.Now()
	var pieces []Delta
	for _, d := range joined {
		key := deltaKey{d.Run, d.Epoch, d.Step, d.Attempt}
		count := w.next[d.Run]
		if count.key != key {
			count = deltaCount{key: key}
		}
		if _, ok := lost[d.Run]; ok {
			count.seq++
		}
		for text := strings.ToValidUTF8(d.Text, "\uFFFD"); text != ""; count.seq++ {
			n := min(len(text), deltaText)
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n--
			}
			d.Seq, d.Text, text = count.seq, text[:n], text[n:]
			pieces = append(pieces, d)
		}
		count.used = now
		w.next[d.Run] = count
	}
	for run, count := range w.next {
		if now.Sub(count.used) > time.Hour {
			delete(w.next, run)
		}
	}
	return pieces
}

// send notifies in a transaction of its own, which nothing waits for and which need not survive a crash.
func (w *DeltaWriter) send(ctx context.Context, pieces []Delta) error {
	payloads := make([]string, 0, len(pieces))
	for _, d := range pieces[:min(len(pieces), deltaRound)] {
		payload, err := w.db.sealDelta(ctx, d)
		if err != nil {
			return err
		}
		if payload != "" {
			payloads = append(payloads, payload)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	batch := &pgx.Batch{}
	batch.Queue("SELECT set_config('synchronous_commit', 'off', true)")
	batch.Queue("SELECT pg_notify('"+deltaChannel+"', p) FROM unnest($1::text[]) p", payloads)
	if err := w.db.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("send deltas: %w", err)
	}
	return nil
}

// sealDelta is base64 of the space, the nonce and the ciphertext; empty when the space's key is destroyed.
func (d *DB) sealDelta(ctx context.Context, delta Delta) (string, error) {
	aead, err := d.sealer.key(ctx, delta.Space, false)
	if err != nil || aead == nil {
		return "", err
	}
	plain, err := json.Marshal(delta)
	if err != nil {
		return "", err
	}
	payload := append([]byte{}, delta.Space[:]...)
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce)
	payload = aead.Seal(append(payload, nonce...), nonce, plain, deltaBinding(delta.Space))
	return base64.RawStdEncoding.EncodeToString(payload), nil
}

func (d *DB) openDelta(ctx context.Context, payload string) (Delta, error) {
	raw, err := base64.RawStdEncoding.DecodeString(payload)
	var delta Delta
	if err != nil || len(raw) < len(delta.Space)+24 {
		return delta, fmt.Errorf("a delta of %d bytes is none", len(payload))
	}
	copy(delta.Space[:], raw)
	aead, err := d.sealer.key(ctx, delta.Space, false)
	if err != nil {
		return delta, err
	}
	if aead == nil {
		return delta, fmt.Errorf("the key of %s is destroyed", delta.Space)
	}
	raw = raw[len(delta.Space):]
	plain, err := aead.Open(nil, raw[:aead.NonceSize()], raw[aead.NonceSize():], deltaBinding(delta.Space))
	if err != nil {
		return delta, fmt.Errorf("a delta of %s does not open under its key", delta.Space)
	}
	return delta, json.Unmarshal(plain, &delta)
}

func deltaBinding(space event.ID) []byte { return append([]byte("cairn/delta/1\x00"), space[:]...) }

// Deltas calls fn with the deltas of all workers until ctx ends. It has a connection of its own: however much
// is said, the bell rings in time. While the connection is down, deltas are lost.
func (d *DB) Deltas(ctx context.Context, fn func(Delta)) {
	for ctx.Err() == nil {
		err := d.listenDeltas(ctx, fn)
		if ctx.Err() != nil {
			return
		}
		d.slog.Warn("deltas are not heard", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(bellPoll):
		}
	}
}

func (d *DB) listenDeltas(ctx context.Context, fn func(Delta)) error {
	conn, err := pgx.Connect(ctx, d.bell.url)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+deltaChannel); err != nil {
		return err
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		delta, err := d.openDelta(ctx, n.Payload)
		if err != nil {
			d.slog.Debug("a delta was lost", "error", err)
			continue
		}
		fn(delta)
	}
}
