package gateway

import (
	"fmt"
	"net/http"
	"strings"
)

const (
	guardHold = 4   // bytes of a key that must match before a chunk waits
	guardMax  = 256 // chunks that may wait
)

// guard finds a key that an upstream spells over several chunks of a streamed
// answer, which redacting each chunk alone cannot. A chunk whose text could be
// the beginning of the key waits for the next one; when the key is complete
// the answer is cut, so the caller has seen less than guardHold bytes of it.
// This is against servers that echo by accident. One that means harm has the
// key anyway.
type guard struct {
	key   string
	tails map[string]string // by path: the end of the text, as far as it begins the key
	held  []Chunk
}

func newGuard(key Secret) *guard {
	return &guard{key: key.reveal(), tails: map[string]string{}}
}

// pass answers with the chunks that may go to the caller now.
func (g *guard) pass(c Chunk) ([]Chunk, error) {
	if g.key == "" {
		return []Chunk{c}, nil
	}
	value, err := decodeAny(c.Raw)
	if err != nil {
		return nil, err
	}
	if object, ok := value.(map[string]any); ok {
		value = object["choices"]
	}
	if g.walk("", value) {
		return nil, upstreamProblem(http.StatusBadGateway, codeKeyEcho, false,
			"The model's server repeated the gateway's key in its answer. The answer was stopped.")
	}
	g.held = append(g.held, c)
	if g.waiting() && len(g.held) <= guardMax {
		return nil, nil
	}
	return g.rest(), nil
}

// rest gives up what waits. Call it also when the answer is complete.
func (g *guard) rest() []Chunk {
	ready := g.held
	g.held = nil
	return ready
}

func (g *guard) waiting() bool {
	for _, tail := range g.tails {
		if len(tail) >= guardHold {
			return true
		}
	}
	return false
}

// walk follows every string of the choices and says whether one completed the key.
func (g *guard) walk(path string, value any) bool {
	switch v := value.(type) {
	case string:
		return g.text(path, v)
	case []any:
		for i, item := range v {
			if g.walk(fmt.Sprintf("%s[%v]", path, place(i, item)), item) {
				return true
			}
		}
	case map[string]any:
		for name, item := range v {
			if g.walk(path+"."+name, item) {
				return true
			}
		}
	}
	return false
}

// place prefers the index an object gives itself: a chunk often carries one
// choice or one tool call alone.
func place(i int, item any) any {
	if object, ok := item.(map[string]any); ok && object["index"] != nil {
		return object["index"]
	}
	return i
}

func (g *guard) text(path, s string) bool {
	if s == "" {
		return false
	}
	text := g.tails[path] + s
	if strings.Contains(text, g.key) {
		return true
	}
	for n := min(len(text), len(g.key)-1); n > 0; n-- {
		if strings.HasSuffix(text, g.key[:n]) {
			g.tails[path] = text[len(text)-n:]
			return false
		}
	}
	delete(g.tails, path)
	return false
}
