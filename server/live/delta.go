package live

import (
	"context"
	"encoding/json"
	"time"

	"cairn/db"
	"cairn/domain/event"
	"cairn/domain/run"
)

// words is what a run is saying, as far as this replica heard it without a gap. It is for those who begin to
// watch in the middle.
type words struct {
	at   db.Delta // the last piece
	text string   // of all pieces of the attempt up to it
	// whole is false once a piece was missed: then there is nothing to show to newcomers.
	whole    bool
	answered int64 // the last step whose fact has passed
	used     time.Time
}

const (
	maxWords  = 256 << 10 // bytes that are kept of one answer
	wordsLife = 10 * time.Minute
)

// followDeltas hands out what the workers say while their models still speak.
func (h *Hub) followDeltas(ctx context.Context) { h.DB.Deltas(ctx, h.say) }

func (h *Hub) say(d db.Delta) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.words[d.Run]
	if w == nil {
		h.prune()
		w = &words{}
		h.words[d.Run] = w
	}
	if !w.hear(d) {
		return
	}
	topic := Topic{ID: d.Topic}
	watched := h.topics[topic]
	if watched == nil {
		return
	}
	text := encode(deltaFrame{"delta", topic, d.Run, d.Epoch, d.Step, d.Attempt, d.Seq, d.Seq, d.Text})
	for s := range watched.subs {
		s.conn.deliverDelta(s, text)
	}
	h.stats.deltas.Add(1)
}

// hear answers whether the piece is news.
func (w *words) hear(d db.Delta) bool {
	w.used = time.Now()
	switch order := compareDelta(d, w.at); {
	case d.Step <= w.answered || order < 0:
		return false
	case order > 0:
		w.text, w.whole = "", d.Seq == 0
	case d.Seq <= w.at.Seq:
		return false
	case d.Seq > w.at.Seq+1:
		w.whole = false
	}
	w.at = d
	w.at.Text = ""
	w.whole = w.whole && len(w.text)+len(d.Text) <= maxWords
	if !w.whole {
		w.text = ""
		return true
	}
	w.text += d.Text
	return true
}

// compareDelta orders attempts: a later epoch, step or attempt replaces what was said before.
func compareDelta(a, b db.Delta) int {
	for _, pair := range [][2]int64{{a.Step, b.Step}, {a.Epoch, b.Epoch}, {int64(a.Attempt), int64(b.Attempt)}} {
		if pair[0] != pair[1] {
			if pair[0] < pair[1] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// settle forgets words that a fact replaces.
func (h *Hub) settle(r *event.Record) {
	w := h.words[r.StreamID]
	if w == nil {
		return
	}
	switch r.Kind {
	case (run.Succeeded{}).Kind(), (run.Failed{}).Kind(), (run.Cancelled{}).Kind():
		delete(h.words, r.StreamID)
	case (run.ModelAnswered{}).Kind():
		var fact struct {
			Step int64 `json:"step"`
		}
		if json.Unmarshal(r.Data, &fact) == nil {
			w.answered = fact.Step
		}
		w.text, w.whole = "", false
	}
}

// prune drops runs that said nothing for long: their end passed before their last words came.
func (h *Hub) prune() {
	for id, w := range h.words {
		if time.Since(w.used) > wordsLife {
			delete(h.words, id)
		}
	}
}

// spoken answers the frames that bring a newcomer up to what the runs of the topic are saying.
func (h *Hub) spoken(topic Topic) [][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	var frames [][]byte
	for _, w := range h.words {
		if w.whole && topic == (Topic{ID: w.at.Topic}) {
			frames = append(frames, encode(deltaFrame{"delta", topic, w.at.Run, w.at.Epoch, w.at.Step, w.at.Attempt, 0, w.at.Seq, w.text}))
		}
	}
	return frames
}
