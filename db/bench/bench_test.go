package bench

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// TestBench runs every measurement shortly, to see that each works; the numbers of so short a run decide
// nothing. With CAIRN_BENCH=1 it measures in earnest and holds the gates. CAIRN_BENCH_ONLY names groups.
func TestBench(t *testing.T) {
	o := Options{Length: 60 * time.Millisecond, Rounds: 1, Snapshot: 500 * time.Millisecond, Progress: os.Stderr}
	earnest := os.Getenv("CAIRN_BENCH") == "1"
	if earnest {
		o = Options{Progress: os.Stderr}
	} else {
		o.Only = []string{"dispatch", "hot", "tail", "queue", "snapshot"}
	}
	if only := os.Getenv("CAIRN_BENCH_ONLY"); only != "" {
		o.Only = strings.Split(only, ",")
	}
	results, err := Run(t.Context(), o)
	var table strings.Builder
	if terr := Table(&table, results); terr != nil {
		t.Fatal(terr)
	}
	t.Log("\n" + table.String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(results); err != nil {
		t.Fatal(err)
	}
	if earnest && !Passed(results) {
		t.Error("a gate failed")
	}
}
