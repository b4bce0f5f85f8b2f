package egress

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// clientHello is what Go's client sends.
func clientHello(t testing.TB, c *tls.Config) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	go func() {
		_ = tls.Client(b, c).Handshake()
		b.Close()
	}()
	raw, _, err := readHello(a)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// split puts the message of one record into many.
func split(raw []byte, n int) []byte {
	var out []byte
	for body := raw[5:]; len(body) > 0; {
		k := min(n, len(body))
		out = append(out, 22, 3, 1, byte(k>>8), byte(k))
		out = append(out, body[:k]...)
		body = body[k:]
	}
	return out
}

func TestHello(t *testing.T) {
	raw := clientHello(t, &tls.Config{ServerName: "api.example.com", NextProtos: []string{"h2", "http/1.1"}})
	for _, b := range [][]byte{raw, split(raw, 1), split(raw, 7)} {
		sent, h, err := readHello(bytes.NewReader(append(bytes.Clone(b), "more"...)))
		if err != nil || h.Name != "api.example.com" || h.ECH || !bytes.Equal(sent, b) {
			t.Errorf("%+v %v", h, err)
		}
	}
	if _, h, err := readHello(bytes.NewReader(clientHello(t, &tls.Config{InsecureSkipVerify: true}))); err != nil || h.Name != "" {
		t.Errorf("%+v %v", h, err)
	}
	for text, want := range map[string]error{"GET / HTTP/1.1\r\n": errNotTLS, "SSH-2.0-x\r\n": errNotTLS, "": errNotTLS, "\x16\x03\x01\x00\x00": errHello, "\x16\x03\x01\xff\xff": errHello, "\x16\x03\x01\x00\x01\x02": errNotTLS} {
		if _, _, err := readHello(strings.NewReader(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	hidden := withExtension(raw, extECH, []byte{0, 0})
	if _, h, err := readHello(bytes.NewReader(hidden)); err != nil || !h.ECH {
		t.Errorf("ECH: %+v %v", h, err)
	}
	twice := withExtension(raw, extServerName, append([]byte{0, 8, 0, 0, 5}, "x.org"...))
	if _, _, err := readHello(bytes.NewReader(twice)); !errors.Is(err, errHello) {
		t.Errorf("two names: %v", err)
	}
}

// withExtension adds one to the end of a ClientHello in one record.
func withExtension(raw []byte, kind int, body []byte) []byte {
	b := bytes.Clone(raw[5:])
	at := 4 + 34
	at += 1 + int(b[at])
	at += 2 + int(binary.BigEndian.Uint16(b[at:]))
	at += 1 + int(b[at])
	ext := append([]byte{byte(kind >> 8), byte(kind), byte(len(body) >> 8), byte(len(body))}, body...)
	binary.BigEndian.PutUint16(b[at:], binary.BigEndian.Uint16(b[at:])+uint16(len(ext)))
	b = append(b, ext...)
	n := len(b) - 4
	b[1], b[2], b[3] = byte(n>>16), byte(n>>8), byte(n)
	return append([]byte{22, 3, 1, byte(len(b) >> 8), byte(len(b))}, b...)
}

// FuzzHello compares with Go's own server: whenever that reads a name, ours is the same, so that a tunnel is
// judged by the name that the other end will see.
func FuzzHello(f *testing.F) {
	for _, name := range []string{"api.example.com", "x.org", ""} {
		raw := clientHello(f, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		f.Add(raw)
		f.Add(split(raw, 40))
		f.Add(withExtension(raw, extECH, []byte{0, 0}))
		f.Add(withExtension(raw, extServerName, append([]byte{0, 8, 0, 0, 5}, "x.org"...)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		sent, h, err := readHello(bytes.NewReader(raw))
		if err == nil && !bytes.HasPrefix(raw, sent) {
			t.Fatal("other bytes would be sent on than were read")
		}
		seen := false
		s := tls.Server(&oneWay{r: bytes.NewReader(raw)}, &tls.Config{GetConfigForClient: func(c *tls.ClientHelloInfo) (*tls.Config, error) {
			seen = true
			if err == nil && c.ServerName != h.Name && strings.TrimSuffix(c.ServerName, ".") != h.Name {
				t.Errorf("ours %q, Go's %q", h.Name, c.ServerName)
			}
			return nil, errors.New("seen")
		}})
		_ = s.Handshake()
		_ = seen
	})
}

// oneWay is a connection that says something and hears nothing.
type oneWay struct {
	net.Conn
	r io.Reader
}

func (c *oneWay) Read(b []byte) (int, error)       { return c.r.Read(b) }
func (c *oneWay) Write(b []byte) (int, error)      { return len(b), nil }
func (c *oneWay) Close() error                     { return nil }
func (c *oneWay) SetDeadline(time.Time) error      { return nil }
func (c *oneWay) SetWriteDeadline(time.Time) error { return nil }
