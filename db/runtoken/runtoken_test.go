package runtoken

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

var (
	key  = bytes.Repeat([]byte{7}, MinKey)
	noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
)

func TestRoundTrip(t *testing.T) {
	got, err := Verify(key, Mint(key, "0198-run", 3, noon), noon.Add(-time.Microsecond))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Claims{Run: "0198-run", Epoch: 3, Expires: noon}); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestRefusals(t *testing.T) {
	good := Mint(key, "r", 1, noon)
	cut := good[:strings.LastIndexByte(good, '.')]
	cases := map[string]struct {
		key   []byte
		token string
		now   time.Time
		want  error
	}{
		"expired":         {key, good, noon, ErrExpired},
		"other key":       {bytes.Repeat([]byte{8}, MinKey), good, noon.Add(-1), ErrSignature},
		"short key":       {key[:31], Mint(key[:31], "r", 1, noon), noon.Add(-time.Hour), ErrKey},
		"no key":          {nil, Mint(nil, "r", 1, noon), noon.Add(-time.Hour), ErrKey},
		"empty":           {key, "", noon, ErrMalformed},
		"prefix only":     {key, prefix, noon, ErrMalformed},
		"no signature":    {key, cut, noon, ErrMalformed},
		"cut signature":   {key, good[:len(good)-2], noon, ErrMalformed},
		"other version":   {key, strings.Replace(good, "v1", "v2", 1), noon, ErrMalformed},
		"too long":        {key, good + strings.Repeat("A", maxToken), noon, ErrMalformed},
		"names no run":    {key, Mint(key, "", 1, noon), noon.Add(-time.Hour), ErrMalformed},
		"line at end":     {key, good + "\n", noon.Add(-time.Hour), ErrMalformed},
		"payload swapped": {key, Mint(key, "s", 1, noon)[:len(cut)] + good[len(cut):], noon.Add(-time.Hour), ErrSignature},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Verify(c.key, c.token, c.now)
			if !errors.Is(err, c.want) || got != (Claims{}) {
				t.Fatalf("got %+v, %v; want %v", got, err, c.want)
			}
		})
	}
}

// TestEveryBit flips each bit of a token: one token has one spelling, and no
// other is accepted.
func TestEveryBit(t *testing.T) {
	good := []byte(Mint(key, "r", 1, noon))
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			if _, err := Verify(key, string(bad), noon.Add(-time.Hour)); err == nil {
				t.Fatalf("byte %d bit %d: accepted %q", i, bit, bad)
			}
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(Mint(key, "r", 1, noon))
	f.Add(prefix + "e30.AAAA")
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := Verify(key, token, noon.Add(-time.Hour)); err == nil && token != Mint(key, "r", 1, noon) {
			t.Fatalf("accepted a token nobody signed: %q", token)
		}
	})
}
