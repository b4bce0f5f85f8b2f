package sandbox

import (
	"fmt"
	"strings"
)

// Output is what is kept of one stream: its beginning and its end.
type Output struct {
	Head      []byte
	Tail      []byte // empty unless truncated
	Total     int64  // bytes the program wrote
	Truncated bool   // bytes between Head and Tail are missing
}

// Bytes joins the parts, with a line between them when something is missing.
func (o Output) Bytes() []byte {
	if !o.Truncated {
		return append(append([]byte{}, o.Head...), o.Tail...)
	}
	missing := o.Total - int64(len(o.Head)+len(o.Tail))
	b := append([]byte{}, o.Head...)
	b = fmt.Appendf(b, "\n[... %d bytes left out ...]\n", missing)
	return append(b, o.Tail...)
}

// Text is Bytes as valid UTF-8.
func (o Output) Text() string { return Text(o.Bytes()) }

// Text repairs bytes to valid UTF-8: every run of invalid bytes becomes one
// U+FFFD. Control characters stay.
func Text(p []byte) string { return strings.ToValidUTF8(string(p), "\uFFFD") }

// keeper collects an Output within a limit, half for each end.
type keeper struct {
	limit int
	head  []byte
	tail  []byte // ring of the last bytes, once full
	at    int    // where the ring begins
	total int64
}

func (k *keeper) add(p []byte) {
	k.total += int64(len(p))
	if room := k.limit - k.limit/2 - len(k.head); room > 0 {
		n := min(room, len(p))
		k.head = append(k.head, p[:n]...)
		p = p[n:]
	}
	size := k.limit / 2
	if len(p) > size {
		p = p[len(p)-size:]
	}
	if n := min(size-len(k.tail), len(p)); n > 0 {
		k.tail = append(k.tail, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(k.tail[k.at:], p)
		k.at = (k.at + n) % size
		p = p[n:]
	}
}

func (k *keeper) output() Output {
	o := Output{Head: k.head, Total: k.total}
	o.Tail = append(append(o.Tail, k.tail[k.at:]...), k.tail[:k.at]...)
	o.Truncated = k.total > int64(len(o.Head)+len(o.Tail))
	return o
}
