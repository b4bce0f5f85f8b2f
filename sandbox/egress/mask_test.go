package egress

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMaskAcrossChunks: however the text is cut, what comes out is the text masked as a whole, and what is
// held back is never more than the beginning of a secret.
func TestMaskAcrossChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.SampledFrom([]rune("ab=")), 3, 9, -1)
		secrets := rapid.SliceOfN(letters, 1, 3).Draw(t, "secrets")
		m := &Mask{}
		for _, s := range secrets {
			m.needles = append(m.needles, []byte(s))
		}
		parts := rapid.SliceOfN(rapid.OneOf(letters, rapid.SampledFrom(secrets), rapid.Just("x")), 0, 12).Draw(t, "parts")
		text := strings.Join(parts, "")
		want := naive(text, secrets)
		var got bytes.Buffer
		s := m.Stream(&got)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
			if _, err := s.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
			held := text[got.Len() : len(text)-len(rest)]
			if held != "" && !beginsSecret(held, secrets) {
				t.Fatalf("holds %q back, no beginning of %q", held, secrets)
			}
			if got.String() != want[:got.Len()] {
				t.Fatalf("sent %q of %q", got.String(), want)
			}
		}
		if err := s.Close(); err != nil || got.String() != want {
			t.Fatalf("got %q want %q of %q, secrets %q: %v", got.String(), want, text, secrets, err)
		}
		if m.String(text) != want {
			t.Fatal("as a whole it is masked otherwise")
		}
	})
}

func beginsSecret(s string, secrets []string) bool {
	for _, o := range secrets {
		if len(s) < len(o) && strings.HasPrefix(o, s) {
			return true
		}
	}
	return false
}

// naive overwrites, for each place, each secret that stands there.
func naive(text string, secrets []string) string {
	out := []byte(text)
	for i := range text {
		for _, s := range secrets {
			if strings.HasPrefix(text[i:], s) {
				copy(out[i:], strings.Repeat("*", len(s)))
			}
		}
	}
	return string(out)
}

func TestMaskFindsEncodings(t *testing.T) {
	secret := `s3cr3t+/"key`
	m := NewMask(secret)
	for _, s := range []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), `{"k":"s3cr3t+/\"key"}`} {
		if got := m.String("<" + s + ">"); strings.Contains(got, s) || len(got) != len(s)+2 || !strings.Contains(got, "***") {
			t.Errorf("%q -> %q", s, got)
		}
	}
}
