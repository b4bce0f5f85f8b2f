package db

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/chacha20poly1305"

	"cairn/db/internal/logq"
	"cairn/domain/event"
	"cairn/domain/fault"
)

const (
	// MaxSealed is the largest plain text of one sealed field, in bytes.
	MaxSealed = 1 << 20
	// inlineSealed is the largest that stays in the event; more goes to the blob store.
	inlineSealed = 32 << 10
	// keyTrust bounds how long a key is used without asking the vault whether it still exists.
	keyTrust = time.Second
)

// sealer encrypts and decrypts sealed fields with XChaCha20-Poly1305 under the key of their subject. The
// additional data binds a ciphertext to its stream, event kind and field, so that it cannot be moved.
type sealer struct {
	wrap  cipher.AEAD
	vault *logq.Queries
	blobs *BlobStore

	mu   sync.Mutex
	keys map[event.ID]subjectKey
}

type subjectKey struct {
	aead    cipher.AEAD // nil once destroyed
	checked time.Time
}

func newSealer(keys *Keyring, vault *logq.Queries, blobs *BlobStore) (*sealer, error) {
	wrap, err := chacha20poly1305.NewX(keys.Derive("wrap"))
	if err != nil {
		return nil, err
	}
	return &sealer{wrap: wrap, vault: vault, blobs: blobs, keys: map[event.ID]subjectKey{}}, nil
}

// seal encrypts the pending fields of an event and returns it with the subjects whose keys it used. A key
// is made only for a subject whose own stream begins with this event; else a missing key is a refusal.
func (s *sealer) seal(ctx context.Context, stream event.Ref, first bool, e event.Event) (event.Event, []event.ID, error) {
	var used []event.ID
	sealed, err := event.MapSealed(e, func(path string, account bool, field event.Sealed) (event.Sealed, error) {
		if field.IsShown() {
			return field, fmt.Errorf("%s of %s is in its shown form: only sealed text enters the log", path, e.Kind())
		}
		if !field.Pending() {
			return field, nil
		}
		if len(field.Text()) > MaxSealed {
			return field, fault.Field(path, "%d bytes of text, at most %d are allowed: shorten it or put it into a file", len(field.Text()), MaxSealed)
		}
		subject := subjectOf(stream, account)
		if subject.IsZero() {
			return field, fmt.Errorf("%s of %s: a stream outside any space cannot hold content", path, e.Kind())
		}
		aead, err := s.key(ctx, subject, first && subject == stream.ID)
		if err != nil {
			return field, err
		}
		if aead == nil {
			return field, fault.New(fault.Conflict, "subject_erased", "the key of %s was destroyed: nothing can be written for it any more", subject)
		}
		used = append(used, subject)
		box, err := s.box(aead, subject, stream, e.Kind(), path, field.Text())
		return field.WithBox(box), err
	})
	return sealed, used, err
}

func (s *sealer) box(aead cipher.AEAD, subject event.ID, stream event.Ref, kind, path, text string) (event.Box, error) {
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(text)+aead.Overhead())
	rand.Read(nonce)
	ciphertext := aead.Seal(nonce, nonce, []byte(text), additional(stream.ID, kind, path))
	box := event.Box{Key: subject, Size: int64(len(text))}
	if len(text) <= inlineSealed {
		box.Data = ciphertext
		return box, nil
	}
	name, err := s.blobs.Put(ciphertext)
	box.Blob = name
	return box, err
}

// open decrypts the fields of a decoded event. Fields whose key is destroyed read as erased.
func (s *sealer) open(ctx context.Context, stream event.ID, e event.Event) (event.Event, error) {
	return event.MapSealed(e, func(path string, _ bool, field event.Sealed) (event.Sealed, error) {
		box, ok := field.Box()
		if !ok {
			return field, nil
		}
		aead, err := s.key(ctx, box.Key, false)
		if err != nil {
			return field, err
		}
		if aead == nil {
			return field.AsErased(), nil
		}
		ciphertext := box.Data
		if box.Blob != "" {
			if ciphertext, err = s.blobs.Get(box.Blob); err != nil {
				return field, err
			}
		}
		if len(ciphertext) < aead.NonceSize() {
			return field, fmt.Errorf("%s: sealed field of %d bytes is too short", path, len(ciphertext))
		}
		nonce, body := ciphertext[:aead.NonceSize()], ciphertext[aead.NonceSize():]
		text, err := aead.Open(nil, nonce, body, additional(stream, e.Kind(), path))
		if err != nil {
			return field, fmt.Errorf("%s of %s in stream %s does not open under its key: it was altered or moved", path, e.Kind(), stream)
		}
		if int64(len(text)) != box.Size {
			return field, fmt.Errorf("%s of %s in stream %s holds %d bytes, its envelope says %d: it was altered", path, e.Kind(), stream, len(text), box.Size)
		}
		return field.Opened(string(text)), nil
	})
}

// key returns the subject's cipher, nil when its key was destroyed.
func (s *sealer) key(ctx context.Context, subject event.ID, create bool) (cipher.AEAD, error) {
	s.mu.Lock()
	known, ok := s.keys[subject]
	s.mu.Unlock()
	if ok && (known.aead == nil || time.Since(known.checked) < keyTrust) {
		return known.aead, nil
	}
	wrapped, err := s.vault.SubjectKey(ctx, subject)
	if errors.Is(err, pgx.ErrNoRows) && create {
		if err := s.create(ctx, subject); err != nil {
			return nil, err
		}
		wrapped, err = s.vault.SubjectKey(ctx, subject)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.New(fault.Unavailable, "subject_key_missing",
			"the vault has no key for %s: restore the vault from the backup that belongs to this log", subject)
	}
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", subject, err)
	}
	return s.remember(subject, wrapped)
}

func (s *sealer) remember(subject event.ID, wrapped []byte) (cipher.AEAD, error) {
	entry := subjectKey{checked: time.Now()}
	if wrapped != nil {
		if len(wrapped) < s.wrap.NonceSize() {
			return nil, fmt.Errorf("key of %s: wrapped key of %d bytes is too short", subject, len(wrapped))
		}
		raw, err := s.wrap.Open(nil, wrapped[:s.wrap.NonceSize()], wrapped[s.wrap.NonceSize():], subject[:])
		if err != nil {
			return nil, fault.New(fault.Unavailable, "subject_key_unreadable",
				"the key of %s does not open under this deployment key: use the deployment key that this vault was made with", subject)
		}
		if entry.aead, err = chacha20poly1305.NewX(raw); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.keys[subject] = entry
	s.mu.Unlock()
	return entry.aead, nil
}

func (s *sealer) create(ctx context.Context, subject event.ID) error {
	raw := make([]byte, chacha20poly1305.KeySize)
	rand.Read(raw)
	nonce := make([]byte, s.wrap.NonceSize(), s.wrap.NonceSize()+len(raw)+s.wrap.Overhead())
	rand.Read(nonce)
	wrapped := s.wrap.Seal(nonce, nonce, raw, subject[:])
	if err := s.vault.SubjectKeyCreate(ctx, logq.SubjectKeyCreateParams{Subject: subject, Wrapped: wrapped}); err != nil {
		return fmt.Errorf("key of %s: %w", subject, err)
	}
	return nil
}

func subjectOf(stream event.Ref, account bool) event.ID {
	if account {
		return stream.ID
	}
	return stream.Space
}

func additional(stream event.ID, kind, path string) []byte {
	data := append([]byte("cairn/seal/1\x00"), stream[:]...)
	data = append(data, kind...)
	data = append(data, 0)
	return append(data, path...)
}
