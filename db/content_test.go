package db_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"cairn/db"
	"cairn/db/dbtest"
	"cairn/domain/event"
	"cairn/domain/fault"
	"cairn/domain/space"
)

func content(t *testing.T, n int) []byte {
	t.Helper()
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(rand.IntN(256))
	}
	return raw
}

func blobFile(base *dbtest.Database, c event.Content) string {
	return filepath.Join(base.BlobDir, c.Blob[:2], c.Blob[2:])
}

// TestContentComesBack stores sizes around the borders of its pieces, and reads them in odd portions.
func TestContentComesBack(t *testing.T) {
	t.Parallel()
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, d, "demo")
	for _, n := range []int{0, 1, 511, 513, 64<<10 - 1, 64 << 10, 64<<10 + 1, 128 << 10, 300_000} {
		want := content(t, n)
		stored, err := d.StoreContent(t.Context(), team.Space, iotest.HalfReader(bytes.NewReader(want)), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.OpenContent(t.Context(), team.Space, stored.Content)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(iotest.OneByteReader(r))
		if r.Close(); err != nil || !bytes.Equal(got, want) || stored.Content.Size != int64(n) || !bytes.Equal(stored.Head, want[:min(n, 512)]) {
			t.Errorf("%d bytes: %v, %d came back", n, err, len(got))
		}
		if disk, err := os.ReadFile(blobFile(base, stored.Content)); err != nil || n > 16 && bytes.Contains(disk, want[:min(n, 64)]) {
			t.Errorf("%d bytes lie open on disk: %v", n, err)
		}
	}
	same, err1 := d.StoreSame(t.Context(), team.Space, []byte("list"))
	again, err2 := d.StoreSame(t.Context(), team.Space, []byte("list"))
	other, err3 := d.StoreSame(t.Context(), dbtest.NewTeam(t, d, "demo").Space, []byte("list"))
	if err := errors.Join(err1, err2, err3); err != nil || same.Content != again.Content || same.Content.Blob == other.Content.Blob {
		t.Errorf("%v: %v %v %v", err, same, again, other)
	}
}

// TestContentThatIsAltered changes every part of a stored content; nothing of it may come back as if it were whole.
func TestContentThatIsAltered(t *testing.T) {
	t.Parallel()
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, d, "demo")
	stored, err := d.StoreContent(t.Context(), team.Space, bytes.NewReader(content(t, 150_000)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	path := blobFile(base, stored.Content)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const head, piece = 16 + 19, 64<<10 + 16
	flip := func(at int) []byte { b := bytes.Clone(whole); b[at] ^= 1; return b }
	swapped := bytes.Clone(whole)
	copy(swapped[head:], whole[head+piece:head+2*piece])
	copy(swapped[head+piece:], whole[head:head+piece])
	for name, altered := range map[string][]byte{
		"magic": flip(0), "nonce": flip(20), "first piece": flip(head), "last byte": flip(len(whole) - 1), "swapped": swapped,
		"cut": whole[:len(whole)-1], "cut after a piece": whole[:head+piece], "longer": append(bytes.Clone(whole), 0), "empty": {},
	} {
		if err := os.WriteFile(path, altered, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.ReadContent(t.Context(), team.Space, stored.Content, 1<<20); !fault.HasCode(err, "blob_altered") {
			t.Errorf("%s: %v", name, err)
		}
	}
	os.Remove(path)
	if _, err := d.ReadContent(t.Context(), team.Space, stored.Content, 1<<20); !fault.HasCode(err, "blob_missing") {
		t.Errorf("missing: %v", err)
	}
	for _, c := range []event.Content{{}, {Key: team.Space, Blob: "../../../etc/passwd"}, {Key: dbtest.NewID(), Blob: stored.Content.Blob}} {
		if _, err := d.OpenContent(t.Context(), team.Space, c); err == nil {
			t.Errorf("%v was opened", c)
		}
	}
}

// TestContentThatDoesNotArrive leaves nothing on disk: too much of it, a source that breaks off, a space without key.
func TestContentThatDoesNotArrive(t *testing.T) {
	t.Parallel()
	base := dbtest.New(t)
	d := base.Open(t, dbtest.Server)
	team := dbtest.NewTeam(t, d, "demo")
	broken := errors.New("the line went dead")
	for name, c := range map[string]struct {
		from io.Reader
		want error
	}{
		"too large":   {bytes.NewReader(content(t, 200_001)), db.ErrTooLarge},
		"broken off":  {io.MultiReader(bytes.NewReader(content(t, 150_000)), iotest.ErrReader(broken)), broken},
		"cut in half": {io.MultiReader(bytes.NewReader(content(t, 10)), iotest.ErrReader(io.ErrUnexpectedEOF)), io.ErrUnexpectedEOF},
	} {
		if _, err := d.StoreContent(t.Context(), team.Space, c.from, 200_000); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(base.BlobDir, "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
	stored, err := d.StoreContent(t.Context(), team.Space, bytes.NewReader([]byte("secret")), 100)
	if err != nil {
		t.Fatal(err)
	}
	state, _, err := d.Load(t.Context(), space.Stream(team.Space))
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Must(t, d, team.Actor(), space.Erase{Space: team.Space, Claim: state.(space.State).Claim})
	if _, err := d.ReadContent(context.Background(), team.Space, stored.Content, 100); !fault.HasCode(err, "subject_erased") {
		t.Errorf("after the erasure: %v", err)
	}
}
