package hand

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"cairn/sandbox/hand/wire"
)

// pair gives a client that is set up and the other end of its connection.
func pair(t testing.TB) (*Client, *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, end := NewClient(os.NewFile(uintptr(fds[0]), "ours")), os.NewFile(uintptr(fds[1]), "theirs")
	t.Cleanup(func() { c.Close(); end.Close() })
	ready := wire.Frame{Kind: wire.KindReady, Payload: wire.Ready{}.Encode()}
	if _, err := end.Write(ready.Append(nil)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := c.Setup(ctx, nil); err != nil {
		t.Fatal(err)
	}
	return c, end
}

func TestHostileFramesEndTheConnection(t *testing.T) {
	data := func(stream uint8, id uint64, p []byte) wire.Frame {
		return wire.Frame{Kind: wire.KindData, Stream: stream, ID: id, Payload: p}
	}
	for name, frames := range map[string][]wire.Frame{
		"unknown id":        {data(1, 99, []byte("x"))},
		"unknown kind":      {{Kind: 77, ID: 1}},
		"a worker's kind":   {{Kind: wire.KindRequest, ID: 1}},
		"ready again":       {{Kind: wire.KindReady}},
		"empty data":        {data(1, 1, nil)},
		"data on no stream": {data(0, 1, []byte("x"))},
		"above the window":  {data(1, 1, make([]byte, wire.Window)), data(1, 1, []byte("x"))},
		"too much credit":   {{Kind: wire.KindBodyCredit, ID: 1, Payload: wire.EncodeCredit(1)}},
		"bad credit":        {{Kind: wire.KindBodyCredit, ID: 1, Payload: []byte("x")}},
		"bad failure":       {{Kind: wire.KindFail, ID: 1, Payload: []byte("xx")}},
		"answered twice":    {{Kind: wire.KindDone, ID: 1}, {Kind: wire.KindDone, ID: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c, end := pair(t)
			k, err := c.Start([]byte{byte(wire.OpStat)})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range frames {
				if _, err := end.Write(f.Append(nil)); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case <-c.Gone():
			case <-time.After(5 * time.Second):
				t.Fatal("the connection goes on")
			}
			<-k.Done()
			if _, err := k.Answer(); !errors.Is(err, ErrLost) && name != "answered twice" {
				t.Error(err)
			}
			if _, err := c.Start(nil); !errors.Is(err, ErrLost) || !errors.Is(err, wire.ErrProtocol) {
				t.Error(err)
			}
		})
	}
}

func TestSilentHand(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, end := NewClient(os.NewFile(uintptr(fds[0]), "ours")), os.NewFile(uintptr(fds[1]), "theirs")
	defer end.Close()
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Setup(ctx, nil); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

func TestSealedProgramCannotChange(t *testing.T) {
	f, err := Seal([]byte("#!/bin/sh\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("written")
	}
	if err := f.Truncate(1); err == nil {
		t.Error("truncated")
	}
}

func TestMissingProgramNamesTheFix(t *testing.T) {
	if b, err := Embedded(); err == nil {
		if len(b) > 2_600_000 {
			t.Errorf("the embedded hand has %d bytes, aim 2.5 MB", len(b))
		}
	} else if !errors.Is(err, ErrNotEmbedded) || !strings.Contains(err.Error(), "make build") {
		t.Error(err)
	}
}

// FuzzClient feeds any bytes to the reader while two calls are running: it
// must end lost, with every call answered.
func FuzzClient(f *testing.F) {
	f.Add(wire.Frame{Kind: wire.KindDone, ID: 1}.Append(nil))
	f.Add(wire.Frame{Kind: wire.KindData, Stream: 1, ID: 2, Payload: []byte("x")}.Append(nil))
	f.Add(wire.Frame{Kind: wire.KindBodyCredit, ID: 2, Payload: wire.EncodeCredit(9)}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := &Client{conn: null, out: wire.NewWriter(discard{}), calls: map[uint64]*Call{}, gone: make(chan struct{})}
		var calls []*Call
		for range 2 {
			k, err := c.Start([]byte{byte(wire.OpStat)})
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, k)
		}
		c.read(bytes.NewReader(b))
		for _, k := range calls {
			<-k.Done()
			k.Stream(wire.StreamOutput, func([]byte) {})
			k.Stream(wire.StreamError, func([]byte) {})
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
