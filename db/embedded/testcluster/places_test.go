package testcluster

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPlacesAreClusters: the cache of downloaded binaries lies beside the clusters and is none; taken for one it
// made every 'make test' after it fail.
func TestPlacesAreClusters(t *testing.T) {
	beside := strings.TrimSuffix(place(0), "0") + "npm-places-test"
	if err := os.Mkdir(beside, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(beside)
	dirs, err := places()
	if err != nil || slices.Contains(dirs, beside) {
		t.Errorf("%v, %q", err, dirs)
	}
}
