package gateway

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
)

const redacted = "[redacted]"

// Secret is a provider key. Every way to print it prints something else;
// reveal is called where the header is set, and where answers are searched.
type Secret struct{ value string }

func (s Secret) String() string               { return redacted }
func (s Secret) GoString() string             { return redacted }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
func (s Secret) reveal() string               { return s.value }
func (s Secret) known() bool                  { return s.value != "" }

// redactText replaces the key in text for people. Cut to length afterwards,
// never before: a cut key is not found.
func (s Secret) redactText(text string) string {
	if !s.known() {
		return text
	}
	return strings.ReplaceAll(text, s.value, redacted)
}

// redactJSON replaces the key in a JSON value, also where the value spells it
// with escapes. What does not contain it comes back byte for byte.
func (s Secret) redactJSON(raw json.RawMessage) (json.RawMessage, error) {
	if !s.known() {
		return raw, nil
	}
	if bytes.Contains(raw, []byte(s.value)) {
		raw = bytes.ReplaceAll(raw, []byte(s.value), []byte(redacted))
	}
	if !bytes.ContainsRune(raw, '\\') {
		return raw, nil
	}
	value, err := decodeAny(raw)
	if err != nil {
		return nil, err
	}
	value, found := s.redactValue(value)
	if !found {
		return raw, nil
	}
	return encode(value)
}

func (s Secret) redactValue(value any) (any, bool) {
	found := false
	switch v := value.(type) {
	case string:
		clean := s.redactText(v)
		return clean, clean != v
	case []any:
		for i, item := range v {
			clean, hit := s.redactValue(item)
			v[i], found = clean, found || hit
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			clean, hit := s.redactValue(item)
			cleanName := s.redactText(name)
			out[cleanName], found = clean, found || hit || cleanName != name
		}
		return out, found
	}
	return value, found
}

// decodeAny keeps numbers as they are written.
func decodeAny(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	err := d.Decode(&value)
	return value, err
}

// encode leaves <, > and & as they are: models write code.
func encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
