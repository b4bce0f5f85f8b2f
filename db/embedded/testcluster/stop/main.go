// Command stop ends the shared test clusters of this user after a test run. It
// may import testcluster. Exit code 1: one could not be stopped, or is still used.
package main

import (
	"context"
	"fmt"
	"os"

	"cairn/db/embedded/testcluster"
)

func main() {
	if err := testcluster.Stop(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
