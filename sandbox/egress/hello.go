package egress

import (
	"encoding/binary"
	"errors"
	"io"
)

// Hello is what a TLS ClientHello says about where it goes (RFC 8446, 4.1.2; RFC 6066, 3).
type Hello struct {
	Name string // server_name; empty: none
	ECH  bool   // encrypted_client_hello, or an older form of it
}

var (
	errNotTLS = errors.New("not a TLS ClientHello")
	errHello  = errors.New("malformed ClientHello")
)

const (
	recordHandshake = 22
	maxRecord       = 1 << 14
	maxHello        = 64 << 10

	extServerName = 0
	extECH        = 0xfe0d
	extESNI       = 0xffce
)

// readHello reads the records of one ClientHello and gives their bytes, to be sent on, beside what it says. A
// byte more than the ClientHello in its last record is malformed: nothing may hide behind it.
func readHello(r io.Reader) ([]byte, Hello, error) {
	var bytes, message []byte
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(r, head); err != nil {
			return nil, Hello{}, errNotTLS
		}
		n := int(binary.BigEndian.Uint16(head[3:]))
		if head[0] != recordHandshake || head[1] != 3 {
			return nil, Hello{}, errNotTLS
		}
		if n == 0 || n > maxRecord || len(message)+n > maxHello {
			return nil, Hello{}, errHello
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, Hello{}, errNotTLS
		}
		bytes, message = append(append(bytes, head...), body...), append(message, body...)
		if message[0] != 1 {
			return nil, Hello{}, errNotTLS
		}
		if len(message) < 4 {
			continue
		}
		want := 4 + int(message[1])<<16 + int(message[2])<<8 + int(message[3])
		if want > maxHello || len(message) > want {
			return nil, Hello{}, errHello
		}
		if len(message) == want {
			h, err := parseHello(message[4:])
			return bytes, h, err
		}
	}
}

// reader takes fields off the front; after a failure everything is empty.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

// vector takes a length of size bytes, then that many.
func (r *reader) vector(size int) []byte {
	n := 0
	for _, c := range r.take(size) {
		n = n<<8 | int(c)
	}
	return r.take(n)
}

func (r *reader) u16() int {
	if v := r.take(2); v != nil {
		return int(binary.BigEndian.Uint16(v))
	}
	return -1
}

func parseHello(b []byte) (Hello, error) {
	r := &reader{b: b}
	r.take(2 + 32) // version, random
	session := r.vector(1)
	suites := r.vector(2)
	compressions := r.vector(1)
	if r.bad || len(session) > 32 || len(suites) < 2 || len(suites)%2 != 0 || len(compressions) == 0 {
		return Hello{}, errHello
	}
	var h Hello
	if len(r.b) == 0 { // extensions are optional before TLS 1.3
		return h, nil
	}
	list := &reader{b: r.vector(2)}
	if r.bad || len(r.b) != 0 {
		return Hello{}, errHello
	}
	seen := map[int]bool{}
	for len(list.b) > 0 {
		kind, body := list.u16(), list.vector(2)
		if list.bad || seen[kind] {
			return Hello{}, errHello
		}
		seen[kind] = true
		switch kind {
		case extServerName:
			name, ok := serverName(body)
			if !ok {
				return Hello{}, errHello
			}
			h.Name = name
		case extECH, extESNI:
			h.ECH = true
		}
	}
	return h, nil
}

// serverName wants exactly one name, of the only type there is.
func serverName(b []byte) (string, bool) {
	outer := &reader{b: b}
	list := &reader{b: outer.vector(2)}
	kind, name := list.take(1), list.vector(2)
	ok := !outer.bad && !list.bad && len(outer.b) == 0 && len(list.b) == 0 && len(name) > 0
	if !ok || kind[0] != 0 {
		return "", false
	}
	for _, c := range name {
		if c <= 0x20 || c >= 0x7f {
			return "", false
		}
	}
	return string(name), true
}
