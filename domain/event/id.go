package event

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
)

// ID is a 128-bit identifier in the layout of a UUID (RFC 9562). Identifiers of streams and events are
// version 7, minted at the edge; claims use version 5. The zero ID means "none".
type ID [16]byte

// ParseID reads the 36-character form, in lower or upper case.
func ParseID(text string) (ID, error) {
	var id ID
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return ID{}, fmt.Errorf("%.64q is not an id: want 8-4-4-4-12 hexadecimal digits", text)
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return ID{}, fmt.Errorf("%.64q is not an id: %w", text, err)
	}
	return id, nil
}

// NameID derives a version 5 id (RFC 9562, section 5.5) from a name in the space of another id.
func NameID(space ID, name []byte) ID {
	sum := sha1.Sum(append(space[:len(space):len(space)], name...))
	var id ID
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | 0x50
	id[8] = id[8]&0x3f | 0x80
	return id
}

// String returns the 36-character form in lower case.
func (id ID) String() string {
	text, _ := id.MarshalText()
	return string(text)
}

// IsZero reports whether the id is the zero id, "none".
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders ids by their bytes, which is the order in which PostgreSQL sorts them.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) {
	text := make([]byte, 36)
	hex.Encode(text[0:8], id[0:4])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:], id[10:])
	return text, nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}
