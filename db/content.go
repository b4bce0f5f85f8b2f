package db

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"cairn/domain/event"
	"cairn/domain/fault"
)

// Contents are blobs of any size, encrypted in pieces, so that nobody has to hold a whole one:
//
//	"cairn/content/1\0"  19 bytes of nonce  pieces of 64 KiB, each with its tag of 16 bytes; the last may be shorter
//
// Each piece is XChaCha20-Poly1305 under the space's key; its nonce is the blob's 19 bytes, the piece's number (4
// bytes, big-endian), and 1 for the last piece, else 0 (the STREAM construction of Hoang, Reyhanitabar, Rogaway and
// Vizár, 2015): so pieces can neither change places nor be missing. The space is additional data.
const (
	contentMagic = "cairn/content/1\x00"
	noncePrefix  = 19
	pieceSize    = 64 << 10
	// maxContent keeps the number of pieces far from its 4 bytes.
	maxContent = 1 << 40
)

// Stored is content that lies in the blob store, and what was seen while it went there.
type Stored struct {
	Content event.Content
	Digest  string // hexadecimal SHA-256 of the plain bytes
	Head    []byte // the first 512 plain bytes at most
}

// ErrTooLarge says that content is larger than the caller allows.
var ErrTooLarge = errors.New("the content is larger than it may be")

// StoreContent encrypts what it reads under the space's key and stores it, most bytes at most. It is on disk when it
// returns; nothing refers to it before an event does.
func (d *DB) StoreContent(ctx context.Context, space event.ID, from io.Reader, most int64) (Stored, error) {
	nonce := make([]byte, noncePrefix)
	rand.Read(nonce)
	return d.storeContent(ctx, space, from, min(most, maxContent), nonce)
}

// StoreSame is StoreContent for bytes in memory that get the same name in a space each time. The nonce derives from
// them and the key, so that only equal bytes have an equal one.
func (d *DB) StoreSame(ctx context.Context, space event.ID, content []byte) (Stored, error) {
	mac := hmac.New(sha256.New, d.keys.Derive("content-nonce"))
	mac.Write(space[:])
	mac.Write(content)
	return d.storeContent(ctx, space, bytes.NewReader(content), maxContent, mac.Sum(nil)[:noncePrefix])
}

func (d *DB) storeContent(ctx context.Context, space event.ID, from io.Reader, most int64, nonce []byte) (Stored, error) {
	aead, err := d.spaceKey(ctx, space)
	if err != nil {
		return Stored{}, err
	}
	plain := &tally{sum: sha256.New()}
	name, err := d.sealer.blobs.PutStream(func(w io.Writer) error {
		if _, err := io.WriteString(w, contentMagic); err != nil {
			return err
		}
		if _, err := w.Write(nonce); err != nil {
			return err
		}
		return sealPieces(w, io.TeeReader(from, plain), aead, space, nonce, most)
	})
	if err != nil {
		return Stored{}, err
	}
	return Stored{
		Content: event.Content{Key: space, Blob: name, Size: plain.size}, Digest: hex.EncodeToString(plain.sum.Sum(nil)), Head: plain.head,
	}, nil
}

func (d *DB) spaceKey(ctx context.Context, space event.ID) (cipher.AEAD, error) {
	aead, err := d.sealer.key(ctx, space, false)
	if err == nil && aead == nil {
		err = fault.New(fault.Conflict, "subject_erased", "the key of %s was destroyed: its content is gone, and none can be written for it any more", space)
	}
	return aead, err
}

// tally counts and hashes what passes.
type tally struct {
	sum  hash.Hash
	size int64
	head []byte
}

func (t *tally) Write(p []byte) (int, error) {
	t.sum.Write(p)
	t.size += int64(len(p))
	t.head = append(t.head, p[:min(len(p), 512-len(t.head))]...)
	return len(p), nil
}

func pieceNonce(nonce []byte, n uint32, last bool) []byte {
	whole := binary.BigEndian.AppendUint32(append(make([]byte, 0, noncePrefix+5), nonce...), n)
	if last {
		return append(whole, 1)
	}
	return append(whole, 0)
}

// sealPieces reads one piece ahead, to know which is the last.
func sealPieces(w io.Writer, from io.Reader, aead cipher.AEAD, space event.ID, nonce []byte, most int64) error {
	piece, next := make([]byte, pieceSize), make([]byte, pieceSize)
	n, err := readPiece(from, piece)
	for number, total := uint32(0), int64(n); err == nil; number++ {
		if total > most {
			return ErrTooLarge
		}
		m := 0
		if n == pieceSize {
			if m, err = readPiece(from, next); err != nil {
				break
			}
		}
		sealed := aead.Seal(nil, pieceNonce(nonce, number, m == 0), piece[:n], space[:])
		if _, err := w.Write(sealed); err != nil {
			return err
		}
		if m == 0 {
			return nil
		}
		piece, next, n, total = next, piece, m, total+int64(m)
	}
	return err
}

// readPiece fills the piece, or less at the end. A source that broke off is an error, unlike one that ended.
func readPiece(from io.Reader, piece []byte) (int, error) {
	n := 0
	for n < len(piece) {
		m, err := from.Read(piece[n:])
		n += m
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// DropContent removes content that no event refers to, because the command that would have was refused.
func (d *DB) DropContent(content event.Content) error {
	err := os.Remove(d.sealer.blobs.path(content.Blob))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// OpenContent reads content of a space back. Each piece is authenticated before it is given out; the last read fails
// when anything is missing.
func (d *DB) OpenContent(ctx context.Context, space event.ID, content event.Content) (io.ReadCloser, error) {
	if !content.IsWhole(space) {
		return nil, fmt.Errorf("content %.80q is not one of space %s", content.Blob, space)
	}
	aead, err := d.spaceKey(ctx, space)
	if err != nil {
		return nil, err
	}
	f, err := d.sealer.blobs.open(content.Blob)
	if err != nil {
		return nil, err
	}
	r := &contentReader{file: f, aead: aead, space: space, content: content, left: content.Size, sum: sha256.New()}
	if err := r.begin(); err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// ReadContent is OpenContent for what is small enough to be held: at most most bytes.
func (d *DB) ReadContent(ctx context.Context, space event.ID, content event.Content, most int64) ([]byte, error) {
	if content.Size > most {
		return nil, fmt.Errorf("content %s has %d bytes, at most %d are read at once: %w", content.Blob, content.Size, most, ErrTooLarge)
	}
	r, err := d.OpenContent(ctx, space, content)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

type contentReader struct {
	file    *os.File
	aead    cipher.AEAD
	space   event.ID
	content event.Content
	nonce   []byte
	number  uint32
	left    int64 // plain bytes that were not opened yet
	ready   []byte
	sum     hash.Hash
	done    bool
}

func (r *contentReader) begin() error {
	head := make([]byte, len(contentMagic)+noncePrefix)
	if _, err := io.ReadFull(r.file, head); err != nil || string(head[:len(contentMagic)]) != contentMagic {
		return r.altered("it does not begin as contents do")
	}
	r.sum.Write(head)
	r.nonce = head[len(contentMagic):]
	return nil
}

func (r *contentReader) altered(how string) error {
	return fault.New(fault.Unavailable, "blob_altered", "blob %s was altered: %s: restore it from the backup", r.content.Blob, how)
}

func (r *contentReader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.done {
			return 0, io.EOF
		}
		if err := r.piece(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// piece opens the next one. How long it is follows from the size, so that bytes too many are noticed as well.
func (r *contentReader) piece() error {
	size := min(r.left, pieceSize)
	sealed := make([]byte, size+int64(r.aead.Overhead()))
	if _, err := io.ReadFull(r.file, sealed); err != nil {
		return r.altered("bytes are missing")
	}
	r.sum.Write(sealed)
	r.left -= size
	last := r.left == 0
	plain, err := r.aead.Open(sealed[:0], pieceNonce(r.nonce, r.number, last), sealed, r.space[:])
	if err != nil {
		return r.altered("a piece does not open under the key of its space")
	}
	r.number++
	r.ready = plain
	if !last {
		return nil
	}
	r.done = true
	if n, _ := r.file.Read(make([]byte, 1)); n > 0 || hex.EncodeToString(r.sum.Sum(nil)) != r.content.Blob {
		return r.altered("its bytes are not those of its name")
	}
	return nil
}

func (r *contentReader) Close() error { return r.file.Close() }
