// Command cairn runs AI agents for a team in sealed sandboxes, over one event log.
//
// This package is the edge: it reads flags, puts the rooms together, and turns their errors into exit codes.
// It may import every room.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	os.Exit(execute(context.Background(), os.Args[1:]))
}

// execute runs one command line and answers its exit code.
func execute(ctx context.Context, args []string) int {
	// A reader that goes away, as 'head' does, makes a write fail instead of ending this process before it has
	// taken down what it started.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if strings.HasPrefix(err.Error(), "unknown command") { // the library has no type for it
		err = usage(fmt.Errorf("%w: see 'cairn --help'", err))
	}
	if message := err.Error(); message != "" && !unread(err) {
		fmt.Fprintln(os.Stderr, "cairn: "+message)
	}
	return exitCode(err)
}

// unread reports whether standard output has lost its reader, who then wants to hear nothing about it.
func unread(err error) bool {
	write, ok := errors.AsType[*fs.PathError](err)
	return ok && write.Path == os.Stdout.Name() && errors.Is(write, syscall.EPIPE)
}
