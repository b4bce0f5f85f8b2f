package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"cairn/sandbox/hand/wire"
)

// Bounds of the file tools, bytes and results.
const (
	MaxRead    = 16 << 20 // one Read
	MaxWrite   = 64 << 20 // one Write
	MaxEdit    = 8 << 20  // a file that Edit changes
	MaxResults = 10_000   // one Glob or Grep
)

// fileTimeout bounds one file tool when the context does not.
const fileTimeout = 60 * time.Second

// FileInfo describes one file as the agent sees it; links are not followed.
type FileInfo struct {
	Size    int64
	Mode    fs.FileMode
	ModTime time.Time
}

// ReadResult is a part of a file.
type ReadResult struct {
	Data      []byte
	Size      int64 // bytes of the whole file
	Truncated bool  // the file goes on after Data
}

// Match is one line found by Grep.
type Match = wire.Match

// Paths of all tools are absolute or below /workspace. They are resolved
// inside the sandbox, by the agent's own rights. All of them return a
// *ToolError for what the model can act on.

// Read gives up to limit bytes from offset on; limit 0 is MaxRead.
func (i *Instance) Read(ctx context.Context, path string, offset, limit int64) (ReadResult, error) {
	if limit <= 0 || limit > MaxRead {
		limit = MaxRead
	}
	if offset < 0 {
		return ReadResult{}, &ToolError{Code: wire.CodeBadArgument, Message: "offset is negative"}
	}
	m := wire.File{Op: wire.OpRead, Path: path, Offset: uint64(offset), Limit: uint64(limit)}
	d, data, err := i.file(ctx, m, nil, int(limit))
	return ReadResult{Data: data, Size: int64(d.Size), Truncated: d.Truncated}, err
}

// Write replaces the whole file, or makes it with its folders; readers see
// the old content or the new. mode 0 keeps the bits, or gives 0644.
func (i *Instance) Write(ctx context.Context, path string, data []byte, mode fs.FileMode) (created bool, err error) {
	if len(data) > MaxWrite {
		return false, &ToolError{Code: wire.CodeTooLarge, Message: "more than 64 MiB"}
	}
	if data == nil {
		data = []byte{}
	}
	d, _, err := i.file(ctx, wire.File{Op: wire.OpWrite, Path: path, Limit: MaxWrite, Mode: uint64(mode.Perm())}, data, 0)
	return d.Created, err
}

// Edit replaces old by new; old must occur exactly once unless all is set. It
// gives the number of replacements.
func (i *Instance) Edit(ctx context.Context, path, old, new string, all bool) (int, error) {
	d, _, err := i.file(ctx, wire.File{Op: wire.OpEdit, Path: path, Limit: MaxEdit, Old: old, New: new, All: all}, nil, 0)
	return int(d.Count), err
}

// Stat describes a file.
func (i *Instance) Stat(ctx context.Context, path string) (FileInfo, error) {
	d, _, err := i.file(ctx, wire.File{Op: wire.OpStat, Path: path}, nil, 0)
	return FileInfo{Size: int64(d.Size), Mode: fileMode(d.Mode), ModTime: time.Unix(0, d.ModTime).UTC()}, err
}

// Glob lists what matches pattern below dir, relative to it, in the order of
// names. "**" stands for any number of folders. Folders named .git are passed
// over unless the pattern names them. more tells that the limit cut the list.
func (i *Instance) Glob(ctx context.Context, dir, pattern string, limit int) (paths []string, more bool, err error) {
	ms, more, err := i.search(ctx, wire.File{Op: wire.OpGlob, Path: dir, Old: pattern}, limit)
	for _, m := range ms {
		paths = append(paths, m.Path)
	}
	return paths, more, err
}

// Grep lists the lines that match expr (Go's regular expressions) in the
// regular files below path, or in path itself. glob limits the files: a name
// pattern, or with a slash a path pattern. Binary files and .git are passed over.
func (i *Instance) Grep(ctx context.Context, path, expr, glob string, limit int) (ms []Match, more bool, err error) {
	return i.search(ctx, wire.File{Op: wire.OpGrep, Path: path, Old: expr, New: glob}, limit)
}

func (i *Instance) search(ctx context.Context, m wire.File, limit int) ([]Match, bool, error) {
	if limit <= 0 || limit > MaxResults {
		limit = MaxResults
	}
	if m.Path == "" {
		m.Path = "."
	}
	m.Limit = uint64(limit)
	// A result is at most a path of 4 KiB, a line of 500 bytes and their lengths.
	d, data, err := i.file(ctx, m, nil, limit*(4096+500+16))
	if err != nil {
		return nil, false, err
	}
	ms, err := wire.DecodeMatches(data)
	if err != nil || len(ms) > limit {
		return nil, false, i.violated("more results than asked for", err)
	}
	return ms, d.Truncated, nil
}

// file runs one request of a file tool and keeps at most limit bytes of its
// answer; a hand that sends more is lost.
func (i *Instance) file(ctx context.Context, m wire.File, body []byte, limit int) (wire.FileDone, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return wire.FileDone{}, nil, err
	}
	call, err := i.client.Start(m.Encode())
	if err != nil {
		return wire.FileDone{}, nil, err
	}
	if body != nil {
		go func() {
			if call.Body(body) {
				call.BodyEnd()
			}
		}()
	}
	var data []byte
	read := make(chan struct{})
	over := false
	go func() {
		defer close(read)
		call.Stream(wire.StreamOutput, func(p []byte) {
			if over = over || len(data)+len(p) > limit; !over {
				data = append(data, p...)
			}
		})
	}()
	_, stopped := i.await(ctx, call, 0)
	<-read
	if over {
		return wire.FileDone{}, nil, i.violated("more data than asked for", nil)
	}
	answer, err := call.Answer()
	if stopped != nil || err != nil {
		return wire.FileDone{}, nil, errors.Join(stopped, err)
	}
	d, err := wire.DecodeFileDone(answer)
	if err != nil || d.Size > 1<<62 || d.Count > 1<<31 {
		return d, nil, i.violated("an impossible number", err)
	}
	return d, data, nil
}

func (i *Instance) violated(what string, err error) error {
	i.client.Lose(errors.New(what))
	return errors.Join(ErrHandLost, wire.ErrProtocol, errors.New(what), err)
}

// fileMode translates st_mode.
func fileMode(m uint64) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	types := map[uint64]fs.FileMode{
		0o040000: fs.ModeDir, 0o120000: fs.ModeSymlink, 0o010000: fs.ModeNamedPipe,
		0o140000: fs.ModeSocket, 0o060000: fs.ModeDevice, 0o020000: fs.ModeDevice | fs.ModeCharDevice,
	}
	mode |= types[m&0o170000]
	for bit, flag := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&bit != 0 {
			mode |= flag
		}
	}
	return mode
}
