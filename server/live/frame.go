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
		Type     string `json:"type"` // "subscribed", "live", "unsubscribed", "resync"
		Topic    Topic  `json:"topic"`
		Position int64  `json:"position"`
	}
	endedFrame struct {
		Type     string `json:"type"` // "ended"
		Topic    Topic  `json:"topic"`
		Position int64  `json:"position"`
		Code     string `json:"code"`
		Message  string `json:"message"`
	}
	pingFrame struct {
		Type     string `json:"type"` // "ping"
		Position int64  `json:"position"`
	}
	eventFrame struct {
		Type  string `json:"type"` // "event"
		Topic Topic  `json:"topic"`
		db.Line
	}
	deltaFrame struct {
		Type    string   `json:"type"` // "delta"
		Topic   Topic    `json:"topic"`
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

// frameKey names the frame of an event. It is another one for the activity of its space: the topic is in it.
type frameKey struct {
	position int64
	activity bool
}

// frames encodes events, each one once while it is remembered: the tail and all sockets that replay share it.
type frames struct {
	db *db.DB

	mu    sync.Mutex
	known map[frameKey][]byte
	order []frameKey // oldest first
	bytes int
	life  int64 // grows when everything is forgotten

	turns [64]sync.Mutex // by position: who encodes it now; the others wait for the result
}

// remembered is how many bytes of encoded events a replica keeps.
const remembered = 16 << 20

func newFrames(d *db.DB) *frames { return &frames{db: d, known: map[frameKey][]byte{}} }

// of answers the frame of an event in a topic that it belongs to, and whether it had to be encoded. Those of its two
// topics differ in nothing else, so the event is opened and serialised once for both.
func (f *frames) of(ctx context.Context, r *event.Record, t Topic) (one frame, fresh bool, err error) {
	turn := &f.turns[uint64(r.Position)%uint64(len(f.turns))]
	turn.Lock()
	defer turn.Unlock()
	f.mu.Lock()
	key := frameKey{r.Position, t.Activity}
	text, ok := f.known[key]
	plain := f.known[frameKey{position: r.Position}]
	life := f.life
	f.mu.Unlock()
	if ok {
		return frame{r.Position, text}, false, nil
	}
	if fresh = plain == nil; fresh {
		line, err := f.db.Show(ctx, r)
		if err != nil {
			return frame{}, true, err
		}
		if plain, err = json.Marshal(eventFrame{"event", Topic{ID: r.TopicID}, line}); err != nil {
			return frame{}, true, err
		}
		f.keep(frameKey{position: r.Position}, plain, life)
	}
	if text = plain; t.Activity {
		head := len(eventHead(Topic{ID: r.TopicID}))
		text = append(eventHead(t), plain[head:]...)
		f.keep(key, text, life)
	}
	return frame{r.Position, text}, fresh, nil
}

// eventHead is how the frame of an event begins.
func eventHead(t Topic) []byte { return []byte(`{"type":"event","topic":"` + t.String() + `"`) }

func (f *frames) keep(key frameKey, text []byte, life int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.known[key]; ok || life != f.life {
		return
	}
	f.known[key] = text
	f.order = append(f.order, key)
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
	f.known, f.order, f.bytes, f.life = map[frameKey][]byte{}, nil, 0, f.life+1
}
