package egresstest

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
)

const (
	typeA    = 1
	typeAAAA = 28
)

// serveNames answers queries for A and AAAA records (RFC 1035), without caching.
func (w *World) serveNames() {
	w.there(func() {
		c, err := net.ListenPacket("udp", gateway+":53")
		w.must(err)
		w.t.Cleanup(func() { c.Close() })
		go func() {
			b := make([]byte, 1500)
			for {
				n, from, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				if answer := w.answer(b[:n]); answer != nil {
					_, _ = c.WriteTo(answer, from)
				}
			}
		}()
	})
}

func (w *World) answer(q []byte) []byte {
	if len(q) < 17 {
		return nil
	}
	var labels []string
	at := 12
	for at < len(q) && q[at] != 0 {
		end := at + 1 + int(q[at])
		if end >= len(q) {
			return nil
		}
		labels, at = append(labels, string(q[at+1:end])), end
	}
	if at+5 > len(q) {
		return nil
	}
	kind := binary.BigEndian.Uint16(q[at+1:])
	name := strings.ToLower(strings.Join(labels, "."))
	w.mu.Lock()
	f := w.names[name]
	if kind == typeA {
		w.queries[name]++
	}
	n := w.queries[name]
	w.mu.Unlock()
	out := append([]byte{q[0], q[1], 0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:at+5]...)
	if f == nil {
		out[3] |= 3 // no such name
		return out
	}
	for _, s := range f(n) {
		a := netip.MustParseAddr(s)
		if a.Is4() != (kind == typeA) || kind != typeA && kind != typeAAAA {
			continue
		}
		raw := a.AsSlice()
		out = append(out, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(raw)))
		out = append(out, raw...)
		out[7]++
	}
	return out
}
