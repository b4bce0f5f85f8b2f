// Package check holds the rules that input values share: sizes, encodings and alphabets. Every rule
// answers a fault that names the field, the value and the way to mend it.
//
// Text that breaks them would poison a stream for good (PostgreSQL refuses NUL in text and JSON, and an
// event cannot be taken back), so decisions check although the edges clean.
//
// It may import the standard library, domain/event and domain/fault.
package check

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/domain/event"
	"cairn/domain/fault"
)

// MaxContent is the largest content of one field, in bytes: 1 MiB.
const MaxContent = 1 << 20

// First returns the first error that is not nil.
func First(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// ID refuses the zero id.
func ID(field string, id event.ID) error {
	if id.IsZero() {
		return fault.Field(field, "an id is required, got none: give a version 7 UUID")
	}
	return nil
}

// Readable refuses stored text that cannot be copied, because its key is gone or out of reach.
func Readable(what, fix string, s event.Sealed) error {
	if s.Erased() {
		return fault.New(fault.NotFound, "content_erased", "%s: the text was erased: %s", what, fix)
	}
	if !s.Readable() {
		return fault.New(fault.Unavailable, "content_closed", "%s cannot be read now: check that the vault's deployment key is there", what)
	}
	return nil
}

// Text refuses what is not valid UTF-8, holds NUL, or is not least to most bytes long.
func Text(field, value string, least, most int) error {
	if len(value) < least || len(value) > most {
		return fault.Field(field, "want %d to %d bytes, got %d: shorten it, or split it", least, most, len(value))
	}
	if !utf8.ValidString(value) {
		return fault.Field(field, "not valid UTF-8 at byte %d: replace what is not text", invalidAt(value))
	}
	if at := strings.IndexByte(value, 0); at >= 0 {
		return fault.Field(field, "NUL at byte %d: remove it", at)
	}
	return nil
}

func invalidAt(value string) int {
	at := 0
	for at < len(value) {
		r, size := utf8.DecodeRuneInString(value[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
	return at
}

// Line is Text without control characters and without blanks at its ends.
func Line(field, value string, least, most int) error {
	if err := Text(field, value, least, most); err != nil {
		return err
	}
	if at := strings.IndexFunc(value, unicode.IsControl); at >= 0 {
		return fault.Field(field, "control character at byte %d: remove it, a single line is wanted", at)
	}
	if strings.TrimSpace(value) != value {
		return fault.Field(field, "blanks at the start or end: trim them")
	}
	return nil
}

// Name refuses what is not 1 to most bytes of ASCII letters, digits and the marks . _ : / @ + -
func Name(field, value string, most int) error {
	if len(value) < 1 || len(value) > most {
		return fault.Field(field, "want 1 to %d bytes, got %d", most, len(value))
	}
	return alphabet(field, value, "._:/@+-")
}

// Code refuses what is not 1 to 64 bytes of lower-case ASCII letters, digits, _ and -, letter first.
func Code(field, value string) error {
	if len(value) < 1 || len(value) > 64 {
		return fault.Field(field, "want 1 to 64 bytes, got %d", len(value))
	}
	if value != strings.ToLower(value) || value[0] < 'a' || value[0] > 'z' {
		return fault.Field(field, "%.64q: use lower case and start with a letter", value)
	}
	return alphabet(field, value, "_-")
}

func alphabet(field, value, marks string) error {
	for i := range len(value) {
		c := value[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte(marks, c) < 0 {
			return fault.Field(field, "%.80q holds %q: use ASCII letters, digits and %s only", value, c, marks)
		}
	}
	return nil
}

// Path refuses what is not an absolute, clean path of at most 4096 bytes.
func Path(field, value string) error {
	if err := Text(field, value, 1, 4096); err != nil {
		return err
	}
	if strings.IndexFunc(value, unicode.IsControl) >= 0 {
		return fault.Field(field, "%.120q holds a control character: rename the folder", value)
	}
	if !path.IsAbs(value) || path.Clean(value) != value {
		return fault.Field(field, "%.120q is not an absolute clean path: give it without . and .. and a slash at its end", value)
	}
	return nil
}

// OneOf refuses what is not among the words.
func OneOf(field, value string, words ...string) error {
	for _, word := range words {
		if value == word {
			return nil
		}
	}
	return fault.Field(field, "%.80q is not known: use one of %s", value, strings.Join(words, ", "))
}

// Range refuses a number outside least to most.
func Range(field string, value, least, most int64) error {
	if value < least || value > most {
		return fault.Field(field, "want %d to %d, got %d", least, most, value)
	}
	return nil
}
