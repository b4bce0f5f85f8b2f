package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"cairn/db"
	"cairn/domain/event"
)

// maxMessage bounds what a client may send at once, in bytes. A longer one closes with 1009.
const maxMessage = 8 << 10

// message is what a client may send: one JSON object in a text message.
type message struct {
	Type        string    `json:"type"` // "auth", "subscribe", "unsubscribe"
	Token       string    `json:"token"`
	Topic       Topic     `json:"topic"`
	After       *int64    `json:"after"`
	LogID       *event.ID `json:"log_id"`
	Incarnation *int64    `json:"incarnation"`
}

// parse reads a message. Its error says what is wrong, in words for the close reason.
func parse(data []byte) (message, error) {
	var m message
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("not a message of this protocol: %s", printable(err.Error()))
	}
	if _, err := decoder.Token(); err != io.EOF {
		return m, fmt.Errorf("one JSON object a message")
	}
	return m, m.check()
}

// check finds fields that are missing, or that belong to other types.
func (m message) check() error {
	cursor := m.After != nil || m.LogID != nil || m.Incarnation != nil
	switch m.Type {
	case "auth":
		if m.Token == "" || !m.Topic.IsZero() || cursor {
			return fmt.Errorf("auth has token, and nothing else")
		}
	case "unsubscribe":
		if m.Token != "" || m.Topic.IsZero() || cursor {
			return fmt.Errorf("unsubscribe has topic, and nothing else")
		}
	case "subscribe":
		return m.checkSubscribe()
	default:
		return fmt.Errorf("type must be auth, subscribe or unsubscribe")
	}
	return nil
}

func (m message) checkSubscribe() error {
	switch {
	case m.Token != "":
		return fmt.Errorf("token belongs to auth")
	case m.Topic.IsZero():
		return fmt.Errorf("subscribe needs topic")
	case m.After == nil || *m.After < 0:
		return fmt.Errorf("subscribe needs after, 0 or more")
	case *m.After > 0 && (m.LogID == nil || m.LogID.IsZero() || m.Incarnation == nil):
		return fmt.Errorf("after > 0 needs the log_id and incarnation it is of")
	}
	return nil
}

// cursor is the place that a subscribe names.
func (m message) cursor() db.Cursor {
	c := db.Cursor{Position: *m.After}
	if m.LogID != nil && m.Incarnation != nil {
		c.LogID, c.Incarnation = *m.LogID, *m.Incarnation
	}
	return c
}

// printable keeps a text that repeats the client's bytes fit for a close reason.
func printable(text string) string {
	clean := []byte(text)
	for i, b := range clean {
		if b < ' ' || b > '~' {
			clean[i] = '?'
		}
	}
	return string(clean)
}
