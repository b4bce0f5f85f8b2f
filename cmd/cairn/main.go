// Command cairn runs AI agents for a team in sealed sandboxes, over one event log.
//
// This package is the edge: it reads flags, puts the rooms together, and turns their errors into exit codes.
// It may import every room.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

func main() {
	os.Exit(execute(context.Background(), os.Args[1:]))
}

// execute runs one command line and answers its exit code.
func execute(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if strings.HasPrefix(err.Error(), "unknown command") { // the library has no type for it
		err = usage(fmt.Errorf("%w: see 'cairn --help'", err))
	}
	if message := err.Error(); message != "" {
		fmt.Fprintln(os.Stderr, "cairn: "+message)
	}
	return exitCode(err)
}
