package db

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Keyring holds the secrets of one deployment. They live in files outside the database (mode 0600), or in
// the environment, and never enter a dump of the log.
//
//	deployment.key  64 hexadecimal digits: wraps the keys of subjects; all other secrets derive from it
//	log.key         signs checkpoints of the log (Ed25519, signed note format)
//	log.pub         verifies them; may be given to anyone
type Keyring struct {
	deployment []byte
	Signer     note.Signer
	Verifier   note.Verifier
}

// Environment variables that take precedence over the files.
const (
	EnvDeploymentKey = "CAIRN_DEPLOYMENT_KEY"
	EnvLogKey        = "CAIRN_LOG_KEY"
)

// LoadKeyring reads the keys in dir. With create, keys that are missing are made; otherwise a missing key
// is an error that names the file.
func LoadKeyring(dir string, create bool) (*Keyring, error) {
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("key folder: %w", err)
		}
		if err := createKeys(dir); err != nil {
			return nil, err
		}
	}
	deployment, err := secret(EnvDeploymentKey, filepath.Join(dir, "deployment.key"))
	if err != nil {
		return nil, err
	}
	raw, err := hex.DecodeString(deployment)
	if err != nil || len(raw) != 32 {
		return nil, fmt.Errorf("deployment key (%s or %s): want 64 hexadecimal digits", EnvDeploymentKey, filepath.Join(dir, "deployment.key"))
	}
	signing, err := secret(EnvLogKey, filepath.Join(dir, "log.key"))
	if err != nil {
		return nil, err
	}
	signer, err := note.NewSigner(signing)
	if err != nil {
		return nil, fmt.Errorf("log key (%s or %s): %w", EnvLogKey, filepath.Join(dir, "log.key"), err)
	}
	public, err := os.ReadFile(filepath.Join(dir, "log.pub"))
	if err != nil {
		return nil, fmt.Errorf("public log key: %w", err)
	}
	verifier, err := note.NewVerifier(strings.TrimSpace(string(public)))
	if err != nil {
		return nil, fmt.Errorf("public log key %s: %w", filepath.Join(dir, "log.pub"), err)
	}
	if signer.Name() != verifier.Name() || signer.KeyHash() != verifier.KeyHash() {
		return nil, fmt.Errorf("%s and %s do not belong together: restore both from the same backup", filepath.Join(dir, "log.key"), filepath.Join(dir, "log.pub"))
	}
	return &Keyring{deployment: raw, Signer: signer, Verifier: verifier}, nil
}

func createKeys(dir string) error {
	var raw [32]byte
	rand.Read(raw[:])
	if err := createOnce(filepath.Join(dir, "deployment.key"), hex.EncodeToString(raw[:])); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "log.key")); err == nil {
		return nil
	}
	signing, public, err := note.GenerateKey(rand.Reader, "cairn")
	if err != nil {
		return fmt.Errorf("log key: %w", err)
	}
	// The pair must come from one process: whoever publishes log.pub first wins, and writes log.key too.
	if err := createPair(dir, signing, public); err != nil {
		return err
	}
	return nil
}

// createPair makes both files of the log key appear as one: the private one is linked in last.
func createPair(dir, signing, public string) error {
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("key folder: %w", err)
	}
	defer lock.Close()
	if err := flock(lock); err != nil {
		return fmt.Errorf("key folder %s: lock: %w", dir, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "log.key")); err == nil {
		return nil
	}
	if err := replaceFile(filepath.Join(dir, "log.pub"), public, 0o644); err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, "log.key"), signing, 0o600)
}

func replaceFile(path, text string, mode fs.FileMode) error {
	temp, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	_, werr := temp.WriteString(text + "\n")
	if err := errors.Join(werr, temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("key file %s: %w", path, err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	return syncFolder(filepath.Dir(path)) // the database is bound to it next: a power cut must not lose it
}

// createOnce writes a file unless it exists; of several processes exactly one wins, and nobody sees half.
func createOnce(path, text string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".key-*")
	if err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	defer os.Remove(temp.Name())
	_, werr := temp.WriteString(text + "\n")
	if err := errors.Join(werr, temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("key file %s: %w", path, err)
	}
	if err := os.Link(temp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("key file: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

func secret(env, path string) (string, error) {
	if value := os.Getenv(env); value != "" {
		return value, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("key: %w: restore it from your backup, or set %s", err, env)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("key %s can be read by others (mode %04o): chmod 600 it", path, info.Mode().Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("key: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// Derive returns the 32-byte key for a purpose (HKDF-SHA-256 of the deployment key).
func (k *Keyring) Derive(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, k.deployment, nil, "cairn/"+purpose, 32)
	if err != nil {
		panic(fmt.Sprintf("derive %s: %v", purpose, err)) // only for lengths that are never asked for
	}
	return key
}

// MAC authenticates a message under the key for a purpose (HMAC-SHA-256).
func (k *Keyring) MAC(purpose string, message []byte) []byte {
	mac := hmac.New(sha256.New, k.Derive(purpose))
	mac.Write(message)
	return mac.Sum(nil)
}

// ClaimMAC hides a unique value (an e-mail address, a slug) behind the identity of its claim stream.
func (k *Keyring) ClaimMAC(kind, value string) []byte {
	return k.MAC("claim", []byte(kind+"\x00"+value))
}

// RunTokenKey signs the tokens with which a worker calls the model gateway.
func (k *Keyring) RunTokenKey() []byte { return k.Derive("run-token") }

func (k *Keyring) check() []byte { return k.MAC("check", []byte("cairn/deployment/1")) }
