package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

func TestFramesRoundTrip(t *testing.T) {
	frames := []Frame{
		{Kind: KindSetup},
		{Kind: KindData, Stream: StreamError, ID: 1<<64 - 1, Payload: []byte("x")},
		{Kind: KindRequest, ID: 7, Payload: make([]byte, MaxPayload)},
	}
	var b []byte
	for _, f := range frames {
		b = f.Append(b)
	}
	r := bytes.NewReader(b)
	for _, want := range frames {
		got, err := ReadFrame(r)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v %v", got.Kind, err)
		}
	}
	if _, err := ReadFrame(r); err != io.EOF {
		t.Error(err)
	}
}

func TestBadFramesAreRefused(t *testing.T) {
	good := Frame{Kind: KindData, Stream: 1, ID: 1, Payload: []byte("abc")}.Append(nil)
	for name, change := range map[string]func([]byte) []byte{
		"version":  func(b []byte) []byte { b[4] = 9; return b },
		"stream":   func(b []byte) []byte { b[6] = 3; return b },
		"reserved": func(b []byte) []byte { b[7] = 1; return b },
		"length":   func(b []byte) []byte { b[0] = 0xff; return b },
		"cut":      func(b []byte) []byte { return b[:len(b)-1] },
	} {
		_, err := ReadFrame(bytes.NewReader(change(bytes.Clone(good))))
		if !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMessagesRoundTrip(t *testing.T) {
	x := Exec{Argv: []string{"a", ""}, Dir: "/d", Env: []string{"A=b"}, Stdin: true}
	d := NewDecoder(x.Encode())
	if op := Op(d.U8()); op != OpExec {
		t.Error(op)
	}
	if got, err := DecodeExec(d); err != nil || !reflect.DeepEqual(got, x) {
		t.Errorf("%+v %v", got, err)
	}
	f := File{Op: OpEdit, Path: "p", Offset: 1, Limit: 2, Mode: 3, Old: "o", New: "n", All: true}
	d = NewDecoder(f.Encode())
	if got, err := DecodeFile(Op(d.U8()), d); err != nil || got != f {
		t.Errorf("%+v %v", got, err)
	}
	e := Exited{Code: -1, Signal: 9, Interrupted: true}
	if got, err := DecodeExited(e.Encode()); err != nil || got != e {
		t.Errorf("%+v %v", got, err)
	}
	fd := FileDone{1, 2, 3, -4, true, true}
	if got, err := DecodeFileDone(fd.Encode()); err != nil || got != fd {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := DecodeFileDone(append(fd.Encode(), 0)); !errors.Is(err, ErrProtocol) {
		t.Errorf("trailing byte: %v", err)
	}
	if _, err := DecodeCredit(EncodeCredit(Window + 1)); err == nil {
		t.Error("credit above the window")
	}
}

func TestQueueHoldsOneWindow(t *testing.T) {
	q := NewQueue()
	if err := q.Put(nil); !errors.Is(err, ErrProtocol) {
		t.Error("empty part:", err)
	}
	if err := q.Put(make([]byte, Window)); err != nil {
		t.Error(err)
	}
	if err := q.Put([]byte{1}); !errors.Is(err, ErrProtocol) {
		t.Error("above the window:", err)
	}
	p, _ := q.Get()
	q.Ack(len(p))
	if err := q.Put([]byte{1}); err != nil {
		t.Error(err)
	}
	q.End()
	if err := q.Put([]byte{1}); !errors.Is(err, ErrProtocol) {
		t.Error("after the end:", err)
	}
}

// FuzzFrame: no input makes the reader or a decoder panic or allocate more
// than a frame, and what is accepted reads the same when written again.
func FuzzFrame(f *testing.F) {
	f.Add(Frame{Kind: KindDone, ID: 1, Payload: FileDone{Size: 1}.Encode()}.Append(nil))
	f.Add(Frame{Kind: KindFail, ID: 1, Payload: Fail{Code: "x"}.Encode()}.Append(nil))
	f.Add(Frame{Kind: KindReady, Payload: Ready{Installed: []string{"a", "b"}}.Encode()}.Append(nil))
	f.Add(Frame{Kind: KindRequest, ID: 1, Payload: Exec{Argv: []string{"a"}}.Encode()}.Append(nil))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		fr, err := ReadFrame(r)
		if err != nil {
			return
		}
		if again := fr.Append(nil); !bytes.Equal(again, b[:len(b)-r.Len()]) {
			t.Fatalf("%x reads as %+v", b, fr)
		}
		_, _ = DecodeReady(fr.Payload)
		_, _ = DecodeFail(fr.Payload)
		_, _ = DecodeExited(fr.Payload)
		_, _ = DecodeFileDone(fr.Payload)
		_, _ = DecodeMatches(fr.Payload)
		_, _ = DecodeCredit(fr.Payload)
		d := NewDecoder(fr.Payload)
		op := Op(d.U8())
		_, _ = DecodeExec(d)
		_, _ = DecodeFile(op, NewDecoder(fr.Payload))
	})
}
