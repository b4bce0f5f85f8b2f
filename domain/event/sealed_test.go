package event

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

type sample struct {
	Plain string                `json:"plain"`
	One   Sealed                `json:"one"`
	Own   Sealed                `json:"own" seal:"account"`
	None  Sealed                `json:"none"`
	Inner struct{ Deep Sealed } `json:"inner" seal:"account"`
	Parts []part                `json:"parts"`
	Bare  []Sealed              `json:"bare"`
}

type part struct {
	Text Sealed `json:"text"`
}

func (sample) Kind() string { return "test.sampled" }

func newSample() sample {
	s := sample{Plain: "p", One: Seal("1"), Own: Seal("2"), Parts: []part{{Seal("4")}, {}, {Seal("5")}}, Bare: []Sealed{Seal("6")}}
	s.Inner.Deep = Seal("3")
	return s
}

func TestSealedStates(t *testing.T) {
	box := Box{Key: ID{1}, Size: 3, Data: []byte{9}}
	closed := Sealed{state: sealedClosed, box: box}
	cases := []struct {
		name                            string
		s                               Sealed
		zero, readable, pending, erased bool
		text                            string
		boxed                           bool
	}{
		{"none", Sealed{}, true, false, false, false, "", false},
		{"plain", Seal("abc"), false, true, true, false, "abc", false},
		{"plain and empty", Seal(""), false, true, true, false, "", false},
		{"sealed", Seal("abc").WithBox(box), false, true, false, false, "abc", true},
		{"closed", closed, false, false, false, false, "", true},
		{"opened", closed.Opened("abc"), false, true, false, false, "abc", true},
		{"erased", closed.AsErased(), false, false, false, true, "", true},
		{"erased after opening", closed.Opened("abc").AsErased(), false, false, false, true, "", true},
	}
	for _, c := range cases {
		got := []bool{c.s.IsZero(), c.s.Readable(), c.s.Pending(), c.s.Erased()}
		_, boxed := c.s.Box()
		if !reflect.DeepEqual(got, []bool{c.zero, c.readable, c.pending, c.erased}) || c.s.Text() != c.text || boxed != c.boxed {
			t.Errorf("%s: zero, readable, pending, erased %v, text %q, boxed %v", c.name, got, c.s.Text(), boxed)
		}
	}
}

func TestSealedJSON(t *testing.T) {
	if _, err := json.Marshal(Seal("secret")); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("plain text became JSON, or the refusal tells it: %v", err)
	}
	for _, s := range []Sealed{
		{},
		Seal("x").WithBox(Box{Key: ID{1}, Size: 1, Data: []byte{1, 2}}),
		Seal("x").WithBox(Box{Key: ID{1}, Size: 1, Blob: strings.Repeat("ab", 32)}),
	} {
		data, err := json.Marshal(s)
		if err != nil || strings.Contains(string(data), "x\"") {
			t.Fatalf("%s, %v", data, err)
		}
		var back Sealed
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		was, _ := s.Box()
		if is, _ := back.Box(); !reflect.DeepEqual(was, is) || back.Readable() || back.IsZero() != s.IsZero() {
			t.Errorf("%s came back as %+v", data, back)
		}
	}
}

func TestSealedRefusesBadBoxes(t *testing.T) {
	const key = `"key":"0198a000-0000-7000-8000-000000000001"`
	digest := strings.Repeat("ab", 32)
	for _, bad := range []string{
		`"text"`, `5`, `[]`, `{}`, `{` + key + `,"size":1}`, `{"size":1,"data":"AA=="}`, `{` + key + `,"size":-1,"data":"AA=="}`,
		`{` + key + `,"size":1,"data":"AA==","blob":"` + digest + `"}`, `{` + key + `,"size":1,"data":"%"}`,
		`{` + key + `,"size":1,"blob":"../../etc/passwd"}`, `{` + key + `,"size":1,"blob":"` + strings.ToUpper(digest) + `"}`,
	} {
		var s Sealed
		if err := json.Unmarshal([]byte(bad), &s); err == nil {
			t.Errorf("%s was accepted as %+v", bad, s)
		}
	}
}

func TestMapSealed(t *testing.T) {
	in := newSample()
	paths := map[string]bool{}
	out, err := MapSealed(in, func(path string, account bool, s Sealed) (Sealed, error) {
		paths[path] = account
		return s.WithBox(Box{Key: ID{1}, Size: 1, Data: []byte(s.Text())}), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"one": false, "own": true, "inner.Deep": true, "parts[0].text": false, "parts[2].text": false, "bare[0]": false}
	if !reflect.DeepEqual(paths, want) {
		t.Errorf("paths %v, want %v", paths, want)
	}
	if !reflect.DeepEqual(in, newSample()) {
		t.Errorf("the original was altered: %+v", in)
	}
	mapped := out.(sample)
	if _, ok := mapped.Parts[2].Text.Box(); !ok || mapped.Plain != "p" || !mapped.None.IsZero() || mapped.Parts[2].Text.Text() != "5" {
		t.Errorf("mapped %+v", mapped)
	}
	boom := errors.New("boom")
	if _, err := MapSealed(in, func(string, bool, Sealed) (Sealed, error) { return Sealed{}, boom }); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}
