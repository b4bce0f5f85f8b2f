// Command escape makes one attempt of the escape suite, named by its argument,
// and says what it came to: package escape has the list.
package main

import (
	"os"

	"cairn/sandbox/escape"
)

func main() {
	if len(os.Args) != 2 {
		os.Exit(2)
	}
	os.Exit(escape.Main(os.Args[1]))
}
