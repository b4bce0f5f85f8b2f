// Package hand is the worker's side of the hand, the small process inside a
// sandbox: the embedded program, the sealed memory file it runs from, and the
// client that speaks to it. It imports the standard library,
// golang.org/x/sys and the wire package.
//
// The program is built into the folder bin before the worker is:
//
//	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o sandbox/hand/bin/hand ./sandbox/hand/cmd
//
// Client:
//
//	connected --Setup--> serving --(any violation, end of stream, Close)--> lost
package hand

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

//go:embed all:bin
var bin embed.FS

// ErrNotEmbedded means that the worker was built before the hand.
var ErrNotEmbedded = errors.New("the hand program is not embedded in this binary; build with `make build`, which builds it first")

// Embedded gives the embedded program.
func Embedded() ([]byte, error) {
	b, err := bin.ReadFile("bin/hand")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotEmbedded
	}
	return b, err
}

// Seal copies a program into a memory file that nobody can change any more,
// this process included, so that nothing inside a sandbox can overwrite what
// the next one runs.
func Seal(program []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("cairn-hand", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 every memory file is executable
		fd, err = unix.MemfdCreate("cairn-hand", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("memory file for the hand: %w", err)
	}
	f := os.NewFile(uintptr(fd), "cairn-hand")
	if _, err := f.Write(program); err != nil {
		f.Close()
		return nil, fmt.Errorf("fill the hand's memory file: %w", err)
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal the hand's memory file: %w", err)
	}
	return f, nil
}
