package wire

import (
	"encoding/binary"
	"fmt"
)

// Encoder appends values to a payload. The zero value is ready.
type Encoder struct{ B []byte }

// U8 appends one byte.
func (e *Encoder) U8(v uint8) { e.B = append(e.B, v) }

// Bool appends 0 or 1.
func (e *Encoder) Bool(v bool) {
	if v {
		e.U8(1)
		return
	}
	e.U8(0)
}

// U64 appends eight bytes, big endian.
func (e *Encoder) U64(v uint64) { e.B = binary.BigEndian.AppendUint64(e.B, v) }

// I64 appends a signed number in two's complement.
func (e *Encoder) I64(v int64) { e.U64(uint64(v)) }

// Str appends a length (four bytes) and the bytes.
func (e *Encoder) Str(s string) {
	e.B = binary.BigEndian.AppendUint32(e.B, uint32(len(s)))
	e.B = append(e.B, s...)
}

// Strs appends a count (four bytes) and each string.
func (e *Encoder) Strs(ss []string) {
	e.B = binary.BigEndian.AppendUint32(e.B, uint32(len(ss)))
	for _, s := range ss {
		e.Str(s)
	}
}

// Decoder reads values from a payload. After the first error every read
// gives a zero value; Err and End report it.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder reads from b.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

// Len is the number of bytes not read yet.
func (d *Decoder) Len() int { return len(d.b) }

// Err is the first error.
func (d *Decoder) Err() error { return d.err }

// End is the first error, or one when bytes are left.
func (d *Decoder) End() error {
	if d.err == nil && len(d.b) > 0 {
		d.err = fmt.Errorf("%w: %d bytes after the message", ErrProtocol, len(d.b))
	}
	return d.err
}

func (d *Decoder) take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n < 0 || n > len(d.b) {
		d.err = fmt.Errorf("%w: message of %d bytes ends before a field of %d", ErrProtocol, len(d.b), n)
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

// U8 reads one byte.
func (d *Decoder) U8() uint8 {
	if p := d.take(1); p != nil {
		return p[0]
	}
	return 0
}

// Bool reads 0 or 1; anything else is an error.
func (d *Decoder) Bool() bool {
	v := d.U8()
	if v > 1 && d.err == nil {
		d.err = fmt.Errorf("%w: boolean %d", ErrProtocol, v)
	}
	return v == 1
}

// U64 reads eight bytes.
func (d *Decoder) U64() uint64 {
	if p := d.take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

// I64 reads a signed number.
func (d *Decoder) I64() int64 { return int64(d.U64()) }

func (d *Decoder) u32() int {
	if p := d.take(4); p != nil {
		return int(binary.BigEndian.Uint32(p))
	}
	return 0
}

// Str reads one string.
func (d *Decoder) Str() string { return string(d.take(d.u32())) }

// Strs reads a list of strings. The count is checked against the bytes left
// before anything is allocated.
func (d *Decoder) Strs() []string {
	n := d.u32()
	if d.err != nil || n == 0 {
		return nil
	}
	if n > len(d.b)/4 {
		d.err = fmt.Errorf("%w: list of %d strings in %d bytes", ErrProtocol, n, len(d.b))
		return nil
	}
	ss := make([]string, 0, n)
	for range n {
		ss = append(ss, d.Str())
	}
	if d.err != nil {
		return nil
	}
	return ss
}
