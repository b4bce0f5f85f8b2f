package live

import (
	"context"
	"encoding/json"
	"sync"

	"cairn/db"
	"cairn/domain/event"
)

// Protocol is the version that hello names. It grows when a client could misunderstand what is sent.
const Protocol = 1

// The frames that the server sends. Every WebSocket message is a JSON array of them.
type (
	helloFrame struct {
		Type        string   `json:"type"` // "hello"
		Protocol    int      `json:"protocol"`
		LogID       event.ID `json:"log_id"`
		Incarnation int64    `json:"incarnation"`
		Position    int64    `json:"head"`
		SilenceMS   int64    `json:"silence_ms"`
	}
	topicFrame struct {
		Type     string   `json:"type"` // "subscribed", "live", "unsubscribed", "resync"
		Topic    event.ID `json:"topic"`
		Position int64    `json:"position"`
	}
	endedFrame struct {
		Type     string   `json:"type"` // "ended"
		Topic    event.ID `json:"topic"`
		Position int64    `json:"position"`
		Code     string   `json:"code"`
		Message  string   `json:"message"`
	}
	pingFrame struct {
		Type     string `json:"type"` // "ping"
		Position int64  `json:"position"`
	}
	eventFrame struct {
		Type  string   `json:"type"` // "event"
		Topic event.ID `json:"topic"`
		db.Line
	}
	deltaFrame struct {
		Type    string   `json:"type"` // "delta"
		Topic   event.ID `json:"topic"`
		Run     event.ID `json:"run"`
		Epoch   int64    `json:"epoch"`
		Step    int64    `json:"step"`
		Attempt int      `json:"attempt"`
		From    int64    `json:"from"` // the first and
		Seq     int64    `json:"seq"`  // the last piece that text has
		Text    string   `json:"text"`
	}
)

func encode(frame any) []byte {
	text, err := json.Marshal(frame)
	if err != nil {
		panic(err) // the frames above have nothing that cannot be encoded
	}
	return text
}

// frame is one encoded frame. Its position is 0 when it is not of an event.
type frame struct {
	position int64
	text     []byte
}

// frames encodes events, each one once while it is remembered: the tail and all sockets that replay share it.
type frames struct {
	db *db.DB

	mu    sync.Mutex
	known map[int64][]byte
	order []int64 // oldest first
	bytes int
	life  int64 // grows when everything is forgotten

	turns [64]sync.Mutex // by position: who encodes it now; the others wait for the result
}

// remembered is how many bytes of encoded events a replica keeps.
const remembered = 16 << 20

func newFrames(d *db.DB) *frames { return &frames{db: d, known: map[int64][]byte{}} }

// of answers the frame of an event, and whether it had to be encoded.
func (f *frames) of(ctx context.Context, r *event.Record) (one frame, fresh bool, err error) {
	turn := &f.turns[uint64(r.Position)%uint64(len(f.turns))]
	turn.Lock()
	defer turn.Unlock()
	f.mu.Lock()
	text, ok := f.known[r.Position]
	life := f.life
	f.mu.Unlock()
	if ok {
		return frame{r.Position, text}, false, nil
	}
	line, err := f.db.Show(ctx, r)
	if err != nil {
		return frame{}, true, err
	}
	if text, err = json.Marshal(eventFrame{"event", r.TopicID, line}); err != nil {
		return frame{}, true, err
	}
	f.keep(r.Position, text, life)
	return frame{r.Position, text}, true, nil
}

func (f *frames) keep(position int64, text []byte, life int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.known[position]; ok || life != f.life {
		return
	}
	f.known[position] = text
	f.order = append(f.order, position)
	f.bytes += len(text)
	for f.bytes > remembered {
		f.bytes -= len(f.known[f.order[0]])
		delete(f.known, f.order[0])
		f.order = f.order[1:]
	}
}

// forget drops everything: after an erasure nothing may be shown from memory, and in a restored log the
// positions mean something else.
func (f *frames) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known, f.order, f.bytes, f.life = map[int64][]byte{}, nil, 0, f.life+1
}
