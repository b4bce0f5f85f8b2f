package bench

import (
	"context"
	"errors"
	"time"

	"cairn/db/audit"
)

// rebuild folds the whole log into fresh projections beside the live ones.
func (b *bench) rebuild(ctx context.Context) ([]Result, error) {
	d, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := b.fill(ctx, d); err != nil {
		return nil, err
	}
	s := &series{name: "rebuild of the projections", unit: "events/s"}
	for range b.options.Rounds {
		began := time.Now()
		rebuilt, err := audit.Rebuild(ctx, audit.ReplayOptions{URL: b.cluster.URL("postgres", b.cluster.Superuser()), Keys: d.Keys(), Blobs: b.blobs}, 0)
		if err != nil {
			return nil, err
		}
		s.values = append(s.values, float64(rebuilt.Events())/time.Since(began).Seconds())
		if err := rebuilt.Close(); err != nil {
			return nil, errors.Join(errors.New("drop the rebuilt tables"), err)
		}
	}
	return results(s), nil
}

// Compare makes a result of measurements of other rooms and their floors, pairwise, without a gate.
func Compare(name, unit, floor string, values, floors []float64) Result {
	s := &series{name: name, unit: unit, floor: floor, values: values, floors: floors}
	return s.result()
}
