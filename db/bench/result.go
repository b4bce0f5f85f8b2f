package bench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// series are the rounds of one measurement and of its floor, pairwise.
type series struct {
	name, unit, floor string
	values, floors    []float64
	atLeast, atMost   float64 // gate of the ratio; 0: none
}

func (s *series) add(value, floor float64) {
	s.values, s.floors = append(s.values, value), append(s.floors, floor)
}

func (s *series) result() Result {
	r := Result{Name: s.name, Unit: s.unit, N: len(s.values), Value: median(s.values), Min: slices.Min(s.values), Max: slices.Max(s.values)}
	if s.floor == "" {
		return r
	}
	ratios := make([]float64, len(s.values))
	for i := range ratios {
		ratios[i] = s.values[i] / s.floors[i]
	}
	floor, ratio, low, high := median(s.floors), median(ratios), slices.Min(ratios), slices.Max(ratios)
	r.Floor, r.FloorValue, r.Ratio, r.RatioMin, r.RatioMax = s.floor, &floor, &ratio, &low, &high
	switch {
	case s.atLeast > 0:
		pass := ratio >= s.atLeast
		r.Gate, r.Pass = fmt.Sprintf(">= %g", s.atLeast), &pass
	case s.atMost > 0:
		pass := ratio <= s.atMost
		r.Gate, r.Pass = fmt.Sprintf("<= %g", s.atMost), &pass
	}
	return r
}

func results(all ...*series) []Result {
	var list []Result
	for _, s := range all {
		list = append(list, s.result())
	}
	return list
}

func median(values []float64) float64 { return quantile(values, 0.5) }

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Table prints results for people.
func Table(w io.Writer, list []Result) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "measurement\tmedian\tmin .. max\tn\tfloor\tratio\tmin .. max\tgate")
	for _, r := range list {
		fmt.Fprintf(t, "%s\t%.4g %s\t%.4g .. %.4g\t%d\t", r.Name, r.Value, r.Unit, r.Min, r.Max, r.N)
		if r.Ratio == nil {
			fmt.Fprintln(t, "\t\t\t")
			continue
		}
		gate := "reported"
		if r.Pass != nil {
			gate = r.Gate + " FAILED"
			if *r.Pass {
				gate = r.Gate + " ok"
			}
		}
		fmt.Fprintf(t, "%s %.4g\t%.2f\t%.2f .. %.2f\t%s\n", r.Floor, *r.FloorValue, *r.Ratio, *r.RatioMin, *r.RatioMax, gate)
	}
	return t.Flush()
}

// Passed tells whether every gate held.
func Passed(list []Result) bool {
	return !slices.ContainsFunc(list, func(r Result) bool { return r.Pass != nil && !*r.Pass })
}

// AtMost makes a bound of the ratio a gate of the result.
func AtMost(bound float64, r Result) Result {
	pass := r.Ratio != nil && *r.Ratio <= bound
	r.Gate, r.Pass = fmt.Sprintf("<= %g", bound), &pass
	return r
}
