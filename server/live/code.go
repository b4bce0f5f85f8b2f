package live

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// The close codes, as docs/reference/live.md has them. A client must not come back by itself after the ones
// below 4408 with the same credential or message.
const (
	CodeBadMessage      websocket.StatusCode = 4400 // a message that this protocol does not have
	CodeUnauthenticated websocket.StatusCode = 4401 // no credential that counts, or not in time
	CodeSessionEnded    websocket.StatusCode = 4403 // the credential expired, was revoked, or its account is gone
	CodeSilent          websocket.StatusCode = 4408 // no pong, or the socket does not take what is written
	CodeStartOver       websocket.StatusCode = 4409 // the position is not of this log: forget it and begin at 0
	CodeTooMany         websocket.StatusCode = 4429 // messages faster than allowed
	CodeUnavailable     websocket.StatusCode = 4500 // a part that is needed does not answer
	CodeDraining        websocket.StatusCode = 4503 // this replica stops: connect again, to any
)

// closing is why and how a socket is closed. Its reason is a JSON object of at most 123 bytes.
type closing struct {
	code    websocket.StatusCode
	name    string
	message string        // printable ASCII; cut to fit
	retry   time.Duration // 0: no hint
}

// reason is what the peer reads: {"code","message","retry_ms"}, without what there is not.
func (c closing) reason() string {
	type wire struct {
		Code    string `json:"code"`
		Message string `json:"message,omitempty"`
		RetryMS int64  `json:"retry_ms,omitempty"`
	}
	const room = 123 // RFC 6455, section 5.5: a control frame has 125 bytes, two are the code
	for w := (wire{c.name, c.message, c.retry.Milliseconds()}); ; {
		text, _ := json.Marshal(w)
		if len(text) <= room {
			return string(text)
		}
		w.Message = cut(w.Message, max(0, len(w.Message)-(len(text)-room)))
	}
}

// cut shortens text to at most n bytes without dividing a character.
func cut(text string, n int) string {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:min(n, len(text))]
}

func badMessage(message string) closing {
	return closing{code: CodeBadMessage, name: "bad_message", message: message}
}

func unauthenticated(message string) closing {
	return closing{code: CodeUnauthenticated, name: "unauthenticated", message: message}
}

func sessionEnded() closing { return closing{code: CodeSessionEnded, name: "session_ended"} }

func silent(message string) closing {
	return closing{code: CodeSilent, name: "silent", message: message, retry: jitter(100*time.Millisecond, time.Second)}
}

func startOver(message string) closing {
	return closing{code: CodeStartOver, name: "start_over", message: message}
}

func tooMany(message string) closing {
	return closing{code: CodeTooMany, name: "too_many_messages", message: message, retry: jitter(time.Second, 5*time.Second)}
}

func unavailable() closing {
	return closing{code: CodeUnavailable, name: "unavailable", retry: jitter(500*time.Millisecond, 3*time.Second)}
}

func draining() closing {
	return closing{code: CodeDraining, name: "draining", retry: jitter(100*time.Millisecond, 2*time.Second)}
}

// jitter spreads those who come back, so that they do not come all at once.
func jitter(least, most time.Duration) time.Duration {
	return least + rand.N(most-least)
}

// refuse answers a handshake that is refused before the upgrade, as RFC 9457 has it.
func refuse(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "code": code, "detail": detail})
}
