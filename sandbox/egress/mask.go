package egress

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
)

// Mask overwrites secrets in text, byte for byte, so that lengths stay true. It finds a secret as it is, and in
// the encodings of encodings; what a server makes of it otherwise it cannot know.
type Mask struct {
	needles [][]byte
}

// maskByte takes the place of each byte of a secret.
const maskByte = '*'

// NewMask gives the mask of some secrets; an empty one is left out.
func NewMask(secrets ...string) *Mask {
	m := &Mask{}
	for _, s := range secrets {
		for _, n := range encodings(s) {
			if len(n) > 0 && !slices.ContainsFunc(m.needles, func(o []byte) bool { return string(o) == n }) {
				m.needles = append(m.needles, []byte(n))
			}
		}
	}
	return m
}

// encodings are the forms in which servers commonly give text back.
func encodings(s string) []string {
	j, _ := json.Marshal(s) // a string always encodes
	b := []byte(s)
	return []string{
		s, url.QueryEscape(s), url.PathEscape(s), strings.Trim(string(j), `"`), hex.EncodeToString(b), strings.ToUpper(hex.EncodeToString(b)),
		base64.StdEncoding.EncodeToString(b), base64.RawStdEncoding.EncodeToString(b), base64.URLEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b),
	}
}

// Empty tells that there is nothing to find.
func (m *Mask) Empty() bool { return len(m.needles) == 0 }

// String masks a whole text.
func (m *Mask) String(s string) string {
	b := []byte(s)
	hit := make([]bool, len(b))
	m.find(b, hit)
	apply(b, hit)
	return string(b)
}

// find marks every byte of every occurrence, overlapping ones too.
func (m *Mask) find(b []byte, hit []bool) {
	for _, n := range m.needles {
		for at := 0; ; at++ {
			i := bytes.Index(b[at:], n)
			if i < 0 {
				break
			}
			at += i
			for k := range n {
				hit[at+k] = true
			}
		}
	}
}

func apply(b []byte, hit []bool) {
	for i := range b {
		if hit[i] {
			b[i] = maskByte
		}
	}
}

// keep gives how many bytes at the end may be the beginning of a secret.
func (m *Mask) keep(b []byte) int {
	longest := 0
	for _, n := range m.needles {
		for k := min(len(n)-1, len(b)); k > longest; k-- {
			if bytes.Equal(b[len(b)-k:], n[:k]) {
				longest = k
				break
			}
		}
	}
	return longest
}

// Stream masks what is written to it, across the borders of writes. It holds back only what may be the
// beginning of a secret; Close writes that.
type Stream struct {
	mask *Mask
	to   io.Writer
	held []byte
	hit  []bool
}

// Stream begins a stream.
func (m *Mask) Stream(to io.Writer) *Stream { return &Stream{mask: m, to: to} }

// Write takes all of p, or fails.
func (s *Stream) Write(p []byte) (int, error) {
	s.held = append(s.held, p...)
	s.hit = append(s.hit, make([]bool, len(p))...)
	s.mask.find(s.held, s.hit)
	if err := s.emit(len(s.held) - s.mask.keep(s.held)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the stream; the writer below stays open.
func (s *Stream) Close() error { return s.emit(len(s.held)) }

// emit sends the first n bytes. The others stay as they came, since the rest of a secret may follow.
func (s *Stream) emit(n int) error {
	if n == 0 {
		return nil
	}
	out := slices.Clone(s.held[:n])
	apply(out, s.hit[:n])
	s.held, s.hit = append(s.held[:0], s.held[n:]...), append(s.hit[:0], s.hit[n:]...)
	_, err := s.to.Write(out)
	return err
}
