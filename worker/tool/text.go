package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// clean makes text that an event can hold and a model can read.
func clean(text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "")
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// clip keeps most bytes of a text, half from each end, and says in between what is left out. missing is what
// was left out between head and tail before.
func clip(head, tail string, missing int64, most int) (string, bool) {
	if missing == 0 && len(head)+len(tail) <= most {
		return head + tail, false
	}
	if missing == 0 {
		head, tail = head+tail, head+tail
		first, last := upTo(head, most-most/2), from(tail, most/2)
		return joined(first, last, int64(len(head)-len(first)-len(last))), true
	}
	first, last := upTo(head, most-most/2), from(tail, most/2)
	return joined(first, last, missing+int64(len(head)-len(first))+int64(len(tail)-len(last))), true
}

func joined(first, last string, missing int64) string {
	if first != "" && !strings.HasSuffix(first, "\n") {
		first += "\n"
	}
	return fmt.Sprintf("%s[... %d bytes left out ...]\n%s", first, missing, last)
}

// upTo cuts at a character's boundary.
func upTo(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

func from(text string, n int) string {
	if len(text) <= n {
		return text
	}
	at := len(text) - n
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return text[at:]
}

// list joins lines up to most bytes.
func list(lines []string, most int64) (text string, kept int) {
	var b strings.Builder
	for _, line := range lines {
		line = clean(line)
		if int64(b.Len()+len(line)+1) > most {
			break
		}
		b.WriteString(line)
		b.WriteByte('\n')
		kept++
	}
	return b.String(), kept
}

// found is the result of a search; more says that there are results beyond those given.
func found(lines []string, more bool, most int64, none string) Result {
	if len(lines) == 0 {
		return done(none)
	}
	text, kept := list(lines, most)
	var size int64
	for _, line := range lines {
		size += int64(len(line)) + 1
	}
	r := done(text)
	r.Bytes, r.Truncated = size, more || kept < len(lines)
	switch {
	case more:
		r.Text += fmt.Sprintf("[... %d results shown, there are more: narrow the search ...]\n", kept)
	case kept < len(lines):
		r.Text += fmt.Sprintf("[... %d of %d results shown: narrow the search ...]\n", kept, len(lines))
	}
	return r
}
