// Package bench measures what the log costs, each time beside a floor that was measured in the same run on the
// same machine, interleaved round by round: absolute numbers say more about the disk than about the log.
//
// It works on a private cluster with fsync on, on real aggregates with their projections. A ratio's gate is
// part of its result. Nothing else should run meanwhile.
//
// It may import db and its sub-packages, domain, pgx, River (working the queue) and the standard library.
package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cairn/db/embedded"
)

// Options of a run. The zero value measures all in about four minutes.
type Options struct {
	Dir      string        // data folder of the private cluster; empty: a temporary one, removed afterwards
	Length   time.Duration // of one measurement; 0: 1.5 s
	Rounds   int           // of each comparison, at least 5; 0: 5
	Snapshot time.Duration // how long the old snapshot is held; 0: 25 s
	Only     []string      // names of the groups to run, see Groups; empty: all
	Progress io.Writer     // one line for each group; nil: none
}

// Result is one comparison. Value, Min and Max are over N rounds; Value is the median. Ratio is the median of
// the rounds' own ratios, nil where there is no floor to compare with.
type Result struct {
	Name       string   `json:"name"`
	Unit       string   `json:"unit"`
	Value      float64  `json:"value"`
	Min        float64  `json:"min"`
	Max        float64  `json:"max"`
	N          int      `json:"n"`
	Floor      string   `json:"floor,omitempty"` // what it is compared with
	FloorValue *float64 `json:"floor_value"`     // median, in the same unit; null without a floor
	Ratio      *float64 `json:"ratio"`           // value to floor; null without a floor
	RatioMin   *float64 `json:"ratio_min"`
	RatioMax   *float64 `json:"ratio_max"`
	Gate       string   `json:"gate,omitempty"` // ">= 0.65" or "<= 3"; empty: reported only
	Pass       *bool    `json:"pass"`           // null without a gate
}

// group is a set of measurements that share their rounds.
type group struct {
	name string
	run  func(b *bench, ctx context.Context) ([]Result, error)
}

var groups = []group{
	{"append", (*bench).appends},
	{"dispatch", (*bench).dispatch},
	{"hot", (*bench).hot},
	{"tail", (*bench).tail},
	{"queue", (*bench).queue},
	{"replay", (*bench).replay},
	{"rebuild", (*bench).rebuild},
	{"snapshot", (*bench).snapshot},
}

// Groups lists the names for Options.Only.
func Groups() []string {
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	return names
}

// Run measures. It needs about 1 GiB of disk; the cluster is stopped at the end.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	o = o.withDefaults()
	if o.Dir == "" {
		if o.Dir, err = temporary(); err != nil {
			return nil, err
		}
		defer os.RemoveAll(filepath.Dir(o.Dir))
	}
	cluster, err := embedded.Open(ctx, embedded.Options{Dir: o.Dir, Fsync: true})
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := cluster.Close(); err == nil {
			err = cerr
		}
	}()
	b, err := prepare(ctx, o, cluster)
	if err != nil {
		return nil, err
	}
	defer b.close()
	for _, g := range groups {
		if len(o.Only) > 0 && !slices.Contains(o.Only, g.name) {
			continue
		}
		began := time.Now()
		more, err := g.run(b, ctx)
		if err != nil {
			return results, fmt.Errorf("bench %s: %w", g.name, err)
		}
		results = append(results, more...)
		if o.Progress != nil {
			fmt.Fprintf(o.Progress, "%s: %.0f s\n", g.name, time.Since(began).Seconds())
		}
	}
	return results, nil
}

func (o Options) withDefaults() Options {
	if o.Length == 0 {
		o.Length = 1500 * time.Millisecond
	}
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Snapshot == 0 {
		o.Snapshot = 25 * time.Second
	}
	return o
}

// temporary is a folder that PostgreSQL's own account can reach also when we are root.
func temporary() (string, error) {
	parent, err := os.MkdirTemp("/var/tmp", "cairn-bench-")
	if err != nil {
		return "", fmt.Errorf("bench folder: %w", err)
	}
	return filepath.Join(parent, "data"), os.Chmod(parent, 0o755)
}
