package audit

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"cairn/domain/event"
)

// Checkpoint is a signed statement: the log had this many positions, and this is their Merkle tree hash.
//
//	cairn log 01890a5d-ac96-774b-bcce-b302099a8057     origin: the log's id
//	1024                                               size
//	nND/nri/U0xuHUrYSy0HtMeal2vzD9V4k/BO79C+QeI=       root, base64 of 32 bytes
//	incarnation 1
//	2025-01-01T12:00:00.000000Z                        RFC 3339, UTC, by the clock of the signing process
//	restored                                           only at the beginning of an incarnation
//
// The text is signed as a note of golang.org/x/mod/sumdb/note and follows C2SP tlog-checkpoint; the last
// lines are its extension lines.
type Checkpoint struct {
	LogID       event.ID  `json:"log_id"`
	Size        int64     `json:"size"`
	Root        tlog.Hash `json:"root"`
	Incarnation int64     `json:"incarnation"`
	At          time.Time `json:"at"`
	Restored    bool      `json:"restored"`
}

const (
	noteOrigin   = "cairn log "
	noteLife     = "incarnation "
	noteRestored = "restored"
	noteTime     = "2006-01-02T15:04:05.000000Z"
)

func (c Checkpoint) text() string {
	text := fmt.Sprintf("%s%s\n%d\n%s\n%s%d\n%s\n", noteOrigin, c.LogID, c.Size, c.Root, noteLife, c.Incarnation, c.At.UTC().Format(noteTime))
	if c.Restored {
		text += noteRestored + "\n"
	}
	return text
}

// sign returns the signed note.
func (c Checkpoint) sign(signer note.Signer) (string, error) {
	signed, err := note.Sign(&note.Note{Text: c.text()}, signer)
	if err != nil {
		return "", fmt.Errorf("sign checkpoint of size %d: %w", c.Size, err)
	}
	return string(signed), nil
}

// openCheckpoint checks the signature of a note and reads it.
func openCheckpoint(signed string, verifier note.Verifier) (Checkpoint, error) {
	opened, err := note.Open([]byte(signed), note.VerifierList(verifier))
	if unknown, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
		var by []string
		for _, s := range unknown.Note.UnverifiedSigs {
			by = append(by, fmt.Sprintf("%s+%08x", s.Name, s.Hash))
		}
		return Checkpoint{}, fmt.Errorf("signed by %s, not by %s+%08x: use the public key of this log, or the note is forged",
			strings.Join(by, ", "), verifier.Name(), verifier.KeyHash())
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("signature: %w", err)
	}
	return parseCheckpoint(opened.Text)
}

// parseCheckpoint reads the text of a note. Only the exact form that text writes is accepted.
func parseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 5 {
		return Checkpoint{}, fmt.Errorf("checkpoint of %d lines, want 5 or 6", len(lines))
	}
	var c Checkpoint
	var errs [5]error
	c.LogID, errs[0] = event.ParseID(strings.TrimPrefix(lines[0], noteOrigin))
	c.Size, errs[1] = strconv.ParseInt(lines[1], 10, 64)
	var root []byte
	root, errs[2] = base64.StdEncoding.DecodeString(lines[2])
	copy(c.Root[:], root)
	c.Incarnation, errs[3] = strconv.ParseInt(strings.TrimPrefix(lines[3], noteLife), 10, 64)
	c.At, errs[4] = time.Parse(noteTime, lines[4])
	c.Restored = len(lines) == 6 && lines[5] == noteRestored
	if err := errors.Join(errs[:]...); err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint text: %w", err)
	}
	if c.Size < 0 || c.Incarnation < 1 || c.text() != text {
		return Checkpoint{}, fmt.Errorf("checkpoint text %.200q is not in the form of this version", text)
	}
	return c, nil
}
